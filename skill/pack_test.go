package skill_test

import (
	"archive/zip"
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/skill"
)

func TestWriteZIPGivesTheSameBytesForTheSameFiles(t *testing.T) {
	var first []byte
	for i := range 3 {
		dir := t.TempDir()
		write(t, dir, someFiles)
		write(t, dir, map[string]string{"scripts/tool": "#!/bin/sh\n", ".git/HEAD": "x", "scripts/.tool.swp": "x", "gone": "->nowhere"})
		at := time.Unix(int64(i)*1e8, 0)
		for name := range someFiles {
			os.Chmod(filepath.Join(dir, name), fs.FileMode(0o644|i))
			os.Chtimes(filepath.Join(dir, name), at, at)
		}
		var buf bytes.Buffer
		m, ds, err := skill.WriteZIP(&buf, open(t, dir), "pdf")
		if err != nil || len(ds) != 1 || ds[0].Code != "file-link" {
			t.Fatal(ds, err)
		}
		if first == nil {
			first = buf.Bytes()
		}
		if !bytes.Equal(first, buf.Bytes()) {
			t.Error("bytes differ")
		}
		b, err := openZIP(buf.Bytes(), "pdf.zip", skill.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		back, ds, err := skill.ReadManifest(b)
		if err != nil || len(ds) > 0 || back.Digest() != m.Digest() {
			t.Errorf("read back: %v %v, digest %s, want %s", ds, err, back.Digest(), m.Digest())
		}
	}
	zr, err := zip.NewReader(bytes.NewReader(first), int64(len(first)))
	if err != nil {
		t.Fatal(err)
	}
	modes := map[string]fs.FileMode{}
	for _, f := range zr.File {
		modes[f.Name] = f.Mode()
	}
	want := map[string]fs.FileMode{"pdf/SKILL.md": 0o644, "pdf/empty": 0o644, "pdf/references/a b.md": 0o644, "pdf/scripts.txt": 0o644,
		"pdf/scripts/run.py": 0o644, "pdf/scripts/tool": 0o755}
	if diff := cmp.Diff(want, modes); diff != "" {
		t.Error(diff)
	}
}

func TestWriteZIPRefusesWhatOpenZIPWould(t *testing.T) {
	for name, code := range map[string]string{`a\b`: "backslash", "a:b": "name-colon", "readme.MD": "collision", "a\nb": "name-control"} {
		var buf bytes.Buffer
		_, _, err := skill.WriteZIP(&buf, fstest.MapFS{"README.md": {}, name: {}}, "pdf")
		if refusals, ok := refusalsOf(err); !ok || refusals[0].Code != code || buf.Len() > 0 {
			t.Errorf("%q: %v, %d bytes written", name, err, buf.Len())
		}
	}
	for _, folder := range []string{"", ".", "..", "a/b", `a\b`, "a\x00b", "a\nb"} {
		if _, _, err := skill.WriteZIP(io.Discard, fstest.MapFS{}, folder); err == nil {
			t.Errorf("folder %q was accepted", folder)
		}
	}
}

func TestWriteZIPDetectsChangingFile(t *testing.T) {
	for name, changed := range map[string]string{"longer": "abcd", "shorter": "a", "other": "abx"} {
		fsys := &changing{FS: fstest.MapFS{"f": {Data: []byte("abc")}}, then: fstest.MapFS{"f": {Data: []byte(changed)}}}
		_, _, err := skill.WriteZIP(io.Discard, fsys, "pdf")
		if err == nil || !strings.Contains(err.Error(), "changed") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// changing is a file system whose files are others the second time they are
// opened.
type changing struct {
	fs.FS
	then   fs.FS
	opened bool
}

func (c *changing) Open(name string) (fs.File, error) {
	if name == "f" && c.opened {
		return c.then.Open(name)
	}
	c.opened = c.opened || name == "f"
	return c.FS.Open(name)
}

func (c *changing) Stat(name string) (fs.FileInfo, error) { return fs.Stat(c.FS, name) }

func TestWriteZIPReturnsErrors(t *testing.T) {
	full := errors.New("disk full")
	if _, _, err := skill.WriteZIP(writerFunc(func([]byte) (int, error) { return 0, full }), fstest.MapFS{"a": {Data: []byte(noise(1 << 16))}}, "pdf"); !errors.Is(err, full) {
		t.Error(err)
	}
}

type writerFunc func([]byte) (int, error)

func (f writerFunc) Write(p []byte) (int, error) { return f(p) }
