//go:build unix

package bundle

import (
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/sandbox"
)

// On a full disk, and with too many open files, there is no bundle or a whole one.
func TestOpenWithinLimits(t *testing.T) {
	cache := cacheDir(t)
	tr := tree(map[string]string{"SKILL.md": strings.Repeat("hello", 100), "a/b/run.sh": "#!/bin/sh\n"})
	empty := func(failed error) {
		t.Helper()
		if _, changed := errors.AsType[*sandbox.ChangedError](failed); changed {
			t.Errorf("the tree counts as changed: %v", failed)
		}
		entries, err := os.ReadDir(filepath.Join(cache, "bundles"))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Error(err)
		}
		for _, e := range entries {
			if len(e.Name()) == len(key(tr)) && e.Name() != key(tr) || e.Name() == key(tr) && !hasShape(filepath.Join(cache, "bundles", e.Name()), tr) {
				t.Errorf("after %v, an incomplete bundle is left", failed)
			}
		}
	}
	limittest.FullDisk(t, func() {
		_, err := Open(cache, tree(map[string]string{"big": strings.Repeat("x", limittest.MaxFileSize+1)}))
		if err == nil {
			t.Error("no error of a full disk")
		}
		empty(err)
	})
	for range 2 { // to create it, and to open it again
		var b *Bundle
		limittest.EachOpen(t, func() (err error) { b, err = Open(cache, tr); return err }, empty)
		if got := content(t, b, "a/b/run.sh"); got != "#!/bin/sh\n" {
			t.Errorf("content %q", got)
		}
		b.Close()
	}
}

func TestOpenInFile(t *testing.T) {
	cache := filepath.Join(t.TempDir(), "f")
	if err := os.WriteFile(cache, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(cache, tree(nil)); err == nil || !strings.HasPrefix(err.Error(), "create bundle cache: ") {
		t.Errorf("error is %v", err)
	}
}

// failing is a file system whose files fail after some bytes.
type failing struct{ fstest.MapFS }

type failingFile struct{ fs.File }

func (f failing) Open(name string) (fs.File, error) {
	file, err := f.MapFS.Open(name)
	return failingFile{file}, err
}

func (f failingFile) Read(b []byte) (int, error) {
	if len(b) > 2 {
		b = b[:2]
	}
	n, _ := f.File.Read(b)
	return n, os.ErrDeadlineExceeded
}

type fullWriter struct{}

func (fullWriter) Write([]byte) (int, error) { return 0, os.ErrClosed }

// A tree that cannot be read, or differs from its manifest, has changed. A failure of
// the writer is not one of the tree.
func TestCopyTellsReadFromWriteErrors(t *testing.T) {
	files := fstest.MapFS{"f": {Data: []byte("hello"), Mode: 0o644}, "d": {Mode: fs.ModeDir | 0o755}, "p": {Mode: fs.ModeNamedPipe | 0o644}}
	sum := tree(map[string]string{"f": "hello"}).Files[0].SHA256
	for name, tt := range map[string]struct {
		fs      fs.FS
		file    sandbox.File
		changed bool
		cause   error
	}{
		"equal":                 {files, sandbox.File{Path: "f", Size: 5, SHA256: sum}, false, nil},
		"in upper case":         {files, sandbox.File{Path: "f", Size: 5, SHA256: strings.ToUpper(sum)}, false, nil},
		"without a digest":      {files, sandbox.File{Path: "f", Size: 5}, false, nil},
		"longer":                {files, sandbox.File{Path: "f", Size: 4}, true, nil},
		"shorter":               {files, sandbox.File{Path: "f", Size: 6}, true, nil},
		"other content":         {files, sandbox.File{Path: "f", Size: 5, SHA256: strings.Repeat("0", 64)}, true, nil},
		"missing":               {files, sandbox.File{Path: "none", Size: 5}, true, fs.ErrNotExist},
		"a directory":           {files, sandbox.File{Path: "d"}, true, nil},
		"a pipe":                {files, sandbox.File{Path: "p"}, true, nil},
		"unreadable in between": {failing{files}, sandbox.File{Path: "f", Size: 5}, true, os.ErrDeadlineExceeded},
	} {
		var out bytes.Buffer
		err := Copy(&out, &sandbox.Tree{Path: "/skill", FS: tt.fs}, tt.file)
		c, changed := errors.AsType[*sandbox.ChangedError](err)
		if changed != tt.changed || !changed && (err != nil || out.String() != "hello") || tt.cause != nil && !errors.Is(err, tt.cause) || changed && (c.Tree != "/skill" || c.Path != tt.file.Path) {
			t.Errorf("%s: %v, wrote %q", name, err, out.String())
		}
	}
	err := Copy(fullWriter{}, &sandbox.Tree{FS: files}, sandbox.File{Path: "f", Size: 5})
	if _, changed := errors.AsType[*sandbox.ChangedError](err); changed || !errors.Is(err, os.ErrClosed) {
		t.Errorf("a failed writer: %v", err)
	}
}

func TestProgramOfMissingFile(t *testing.T) {
	dir := t.TempDir()
	if _, b, err := Program(cacheDir(t), filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) || b != nil {
		t.Errorf("a missing program: %v", err)
	}
	if _, b, err := Program(cacheDir(t), dir); err == nil || b != nil {
		t.Error("a directory is a program")
	}
	exe := filepath.Join(dir, "exe")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	limittest.EachOpen(t, func() error {
		_, b, err := Program(cacheDir(t), exe)
		b.Close()
		return err
	}, func(error) {})
	cache, err := Cache()
	if err != nil || !filepath.IsAbs(cache) || filepath.Base(cache) != "loadout" {
		t.Errorf("cache %q, %v", cache, err)
	}
}
