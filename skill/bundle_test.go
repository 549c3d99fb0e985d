package skill_test

import (
	"archive/zip"
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/skillfile"
	"github.com/loadout-dev/loadout/internal/skillpath"
	"github.com/loadout-dev/loadout/skill"
)

// write makes the files of a skill in dir; a value that begins with "->" is a
// link.
func write(t *testing.T, dir string, files map[string]string) {
	t.Helper()
	for name, content := range files {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		var err error
		if target, ok := strings.CutPrefix(content, "->"); ok {
			if err = os.Symlink(target, path); err != nil && runtime.GOOS == "windows" {
				t.Skip("no right to make links:", err)
			}
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func open(t *testing.T, dir string) *skill.Bundle {
	t.Helper()
	b, err := skill.OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { b.Close() })
	return b
}

func paths(m skill.Manifest) []string {
	var out []string
	for _, f := range m {
		out = append(out, f.Path)
	}
	return out
}

var someFiles = map[string]string{
	"SKILL.md": doc(ok), "scripts/run.py": "print(1)\n", "scripts.txt": "a", "references/a b.md": "é", "empty": "",
}

func TestManifestIsSortedByPathAndHashed(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pdf")
	write(t, dir, someFiles)
	b := open(t, dir)
	if b.Folder != "pdf" {
		t.Errorf("folder %q", b.Folder)
	}
	m, ds, err := skill.ReadManifest(b)
	if err != nil || len(ds) > 0 {
		t.Fatal(ds, err)
	}
	sum := func(name string) string {
		return fmt.Sprintf("%x", sha256.Sum256([]byte(someFiles[name])))
	}
	want := skill.Manifest{
		{Path: "SKILL.md", Size: int64(len(doc(ok))), SHA256: sum("SKILL.md")},
		{Path: "empty", SHA256: sum("empty")},
		{Path: "references/a b.md", Size: 2, SHA256: sum("references/a b.md")},
		{Path: "scripts.txt", Size: 1, SHA256: sum("scripts.txt")},
		{Path: "scripts/run.py", Size: 9, SHA256: sum("scripts/run.py"), Script: true},
	}
	if diff := cmp.Diff(want, m); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	if f, ok := m.Find("scripts/run.py"); !ok || f.Size != 9 {
		t.Errorf("Find: %v %v", f, ok)
	}
	if _, ok := m.Find("scripts"); ok {
		t.Error("Find: a directory is not a file")
	}
	if m.Size() != m[0].Size+12 {
		t.Errorf("size %d", m.Size())
	}
	plain, _, err := skill.List(b)
	if err != nil || plain[0].SHA256 != "" || len(plain) != len(m) || plain[1].Path != m[1].Path {
		t.Errorf("a plain listing has the same files without hashes: %v, %v", plain, err)
	}
}

func TestDigestCoversHashAndPathLines(t *testing.T) {
	m := skill.Manifest{{Path: "a", SHA256: "00"}, {Path: "b/c", SHA256: "11"}}
	// printf '00  a\n11  b/c\n' | sha256sum
	const want = "sha256:49f78df64a5f2f952932cb9e9358e23d9b0a75a48780711a76e7d1498b84b4e1"
	if got := m.Digest(); got != want {
		t.Errorf("digest %s, want %s", got, want)
	}
}

func TestDigestDependsOnNamesAndBytesOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, someFiles)
	digest := func() string {
		t.Helper()
		m, _, err := skill.ReadManifest(open(t, dir))
		if err != nil {
			t.Fatal(err)
		}
		return m.Digest()
	}
	first := digest()
	if err := os.Chmod(filepath.Join(dir, "scripts.txt"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Chtimes(filepath.Join(dir, "empty"), time.Time{}, time.Unix(1e9, 0)); err != nil {
		t.Fatal(err)
	}
	write(t, dir, map[string]string{".git/HEAD": "x", "scripts/__pycache__/run.pyc": "x", ".DS_Store": "x", "a/Thumbs.db": "x",
		"scripts/.run.py.swp": "x", "b~": "x", ".#c": "x", "#d#": "x", "__MACOSX/SKILL.md": "x"})
	if got := digest(); got != first {
		t.Error("modes, times and ignored files count")
	}
	write(t, dir, map[string]string{"empty": "x"})
	if got := digest(); got == first {
		t.Error("content does not count")
	}
}

func TestInnerSymlinksAreFilesAndOuterOnesAreReported(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{"secret": "s", "other/x": "y"})
	dir := filepath.Join(base, "pdf")
	write(t, dir, map[string]string{
		"SKILL.md": doc(ok), "in": "->SKILL.md", "deep/in": "->../SKILL.md", "out": "->../secret", "absolute": "->" + filepath.Join(base, "secret"),
		"broken": "->nothing", "dir": "->deep", "outdir": "->../other", "loop": "->loop",
	})
	b := open(t, dir)
	m, ds, err := skill.ReadManifest(b)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"SKILL.md", "deep/in", "in"}, paths(m)); diff != "" {
		t.Error(diff)
	}
	if m[0].SHA256 != m[2].SHA256 {
		t.Error("a link inside has the content of its target")
	}
	for _, name := range []string{"out", "absolute", "broken", "dir", "outdir", "loop"} {
		found := false
		for _, d := range ds {
			found = found || d.Code == "file-link" && strings.HasPrefix(d.Message, name+" ") && d.Fix != ""
		}
		if !found {
			t.Errorf("%s is not reported: %v", name, ds)
		}
	}
	for _, name := range []string{"out", "absolute", "outdir/x", "../secret"} {
		if f, err := b.Open(name); err == nil {
			f.Close()
			t.Errorf("%s can be opened", name)
		}
	}
}

func TestSkillDirectoryMayBeASymlink(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{"real/SKILL.md": doc(ok), "pdf": "->real"})
	b := open(t, filepath.Join(base, "pdf"))
	if m, ds, err := skill.ReadManifest(b); err != nil || len(m) != 1 || len(ds) > 0 || b.Folder != "pdf" {
		t.Errorf("%v %v %v %s", m, ds, err, b.Folder)
	}
}

func TestUnreadableFilesAreReported(t *testing.T) {
	if os.Getuid() == 0 || runtime.GOOS == "windows" {
		t.Skip("everything can be read")
	}
	dir := t.TempDir()
	write(t, dir, map[string]string{"SKILL.md": doc(ok), "secret": "x", "locked/x": "y"})
	for _, name := range []string{"secret", "locked"} {
		if err := os.Chmod(filepath.Join(dir, name), 0); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.Chmod(filepath.Join(dir, name), 0o755) })
	}
	m, ds, err := skill.ReadManifest(open(t, dir))
	if err != nil || len(m) != 1 || len(ds) != 2 || ds[0].Code != "file-unreadable" || ds[1].Code != "file-unreadable" {
		t.Errorf("%v %v %v", m, ds, err)
	}
}

func TestTooManyFilesOrDirectoriesAreAnError(t *testing.T) {
	files, dirs := fstest.MapFS{}, fstest.MapFS{}
	for i := range skillfile.MaxFiles + 1 {
		files["f"+strconv.Itoa(i)] = &fstest.MapFile{}
		dirs["d"+strconv.Itoa(i)] = &fstest.MapFile{Mode: fs.ModeDir}
	}
	for name, fsys := range map[string]fs.FS{"files": files, "directories": dirs} {
		if _, _, err := skill.List(fsys); !errors.Is(err, skill.ErrTooLarge) {
			t.Errorf("too many %s: %v", name, err)
		}
	}
	delete(files, "f0")
	if m, _, err := skill.List(files); err != nil || len(m) != skillfile.MaxFiles {
		t.Errorf("as many files as allowed: %d, %v", len(m), err)
	}
}

func TestHasherReadsChangedFilesOnly(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, someFiles)
	old := time.Now().Add(-time.Hour).Truncate(time.Second)
	for name := range someFiles {
		if err := os.Chtimes(filepath.Join(dir, name), old, old); err != nil {
			t.Fatal(err)
		}
	}
	b := open(t, dir)
	var h skill.Hasher
	for _, change := range []func(){
		func() {},
		func() {},
		func() { write(t, dir, map[string]string{"empty": "x"}) },
		func() { write(t, dir, map[string]string{"new": "x"}) },
		func() { write(t, dir, map[string]string{"new": "y"}) }, // same size, perhaps the same tick
		func() { os.Remove(filepath.Join(dir, "new")) },
		func() {
			os.Remove(filepath.Join(dir, "scripts.txt"))
			write(t, dir, map[string]string{"scripts.txt": "b"})
			os.Chtimes(filepath.Join(dir, "scripts.txt"), old, old)
		},
	} {
		change()
		want, _, err := skill.ReadManifest(b)
		if err != nil {
			t.Fatal(err)
		}
		got, ds, err := h.Manifest(b)
		if err != nil || len(ds) > 0 {
			t.Fatal(ds, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Error(diff)
		}
	}
}

func TestHasherSupportsAnyFS(t *testing.T) {
	fsys := fstest.MapFS{"SKILL.md": {Data: []byte(doc(ok))}}
	var h skill.Hasher
	first, _, err := h.Manifest(fsys)
	if err != nil {
		t.Fatal(err)
	}
	again, _, err := h.Manifest(fsys)
	if err != nil || first.Digest() != again.Digest() {
		t.Errorf("%v %v %v", first, again, err)
	}
}

// W3, W4: the digest covers the files, so a directory and an archive of it are the same
// skill.
func TestDirectoryAndArchiveHaveSameDigest(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "pdf")
	write(t, dir, someFiles)
	want, _, err := skill.ReadManifest(open(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	var flat bytes.Buffer
	zw := zip.NewWriter(&flat)
	if err := zw.AddFS(os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	zw.Close()
	b, err := skill.OpenZIP(bytes.NewReader(flat.Bytes()), int64(flat.Len()), "pdf.zip", skill.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	got, ds, err := skill.ReadManifest(b)
	if err != nil || len(ds) > 0 || got.Digest() != want.Digest() {
		t.Errorf("digest %s, of the directory %s; %v %v", got.Digest(), want.Digest(), ds, err)
	}
}

// K8: the list of files is relative to the root and marks scripts.
// K9: scripts by their extension.
func TestK8K9FilesAreRelativeAndScriptsMarked(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"SKILL.md": "", "scripts/a.py": "", "scripts/deep/b.SH": "", "c.md": "", "tool": ""})
	if err := os.Chmod(filepath.Join(dir, "tool"), 0o755); err != nil {
		t.Fatal(err)
	}
	m, _, err := skill.List(open(t, dir))
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]bool{}
	for _, f := range m {
		got[f.Path] = f.Script
	}
	want := map[string]bool{"SKILL.md": false, "scripts/a.py": true, "scripts/deep/b.SH": true, "c.md": false, "tool": true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	for ext, want := range map[string]bool{".py": true, ".sh": true, ".bash": true, ".js": true, ".ts": true, ".rb": true, ".pl": true, ".php": true,
		".go": false, ".md": false, "": false} {
		if skillpath.IsScript("a"+ext, 0) != want {
			t.Errorf("%s: want %v", ext, want)
		}
	}
}

// K7: reading a file of a skill is confined to it.
func TestK7ReadingIsConfinedToSkill(t *testing.T) {
	base := t.TempDir()
	write(t, base, map[string]string{"outside.md": "x", "pdf/SKILL.md": doc(ok), "pdf/..notes.md": "y", "pdf/link": "->../outside.md"})
	b := open(t, filepath.Join(base, "pdf"))
	for _, name := range []string{"../outside.md", "/etc/passwd", "a/../../outside.md", "link", "./SKILL.md"} {
		if f, err := b.Open(name); err == nil {
			f.Close()
			t.Errorf("%s was opened", name)
		}
	}
	if data, err := fs.ReadFile(b, "..notes.md"); err != nil || len(data) != 1 {
		t.Errorf("a file whose name begins with two dots: %q, %v", data, err)
	}
}

// What cannot be accepted is refused by its size, before it is read.
func TestOversizedSkillIsNotRead(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: a\ndescription: b\n---\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	big := filepath.Join(dir, "big.bin")
	if err := os.WriteFile(big, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(big, 1<<40); err != nil { // sparse: reading it would take minutes
		t.Skipf("no sparse files here: %v", err)
	}
	if _, _, err := skill.ReadManifest(os.DirFS(dir)); !errors.Is(err, skill.ErrTooLarge) {
		t.Errorf("got %v, want ErrTooLarge", err)
	}
}
