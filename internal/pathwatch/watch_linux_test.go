package pathwatch_test

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/pathwatch"
)

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	try(t, os.MkdirAll(filepath.Dir(path), 0o700))
	try(t, os.WriteFile(path, []byte(text), 0o600))
}

func watch(t *testing.T, paths ...string) *pathwatch.Watch {
	t.Helper()
	w, err := pathwatch.New(paths)
	if errors.Is(err, pathwatch.ErrUnsupported) && filepath.IsAbs(paths[0]) {
		t.Skip(err)
	}
	try(t, err)
	t.Cleanup(w.Close)
	return w
}

// Each change that is completed before a call of Changed is reported by it, and
// nothing else is.
func TestChanged(t *testing.T) {
	for _, tt := range []struct {
		name   string
		path   string // watched path
		change func(t *testing.T, dir string)
		want   bool
	}{
		{"nothing", "a/file", func(*testing.T, string) {}, false},
		{"a write", "a/file", func(t *testing.T, dir string) { write(t, dir+"/a/file", "new") }, true},
		{"an equal write", "a/file", func(t *testing.T, dir string) { write(t, dir+"/a/file", "file") }, true},
		{"a write to a hard link", "a/file", func(t *testing.T, dir string) { write(t, dir+"/a/hard", "new") }, true},
		{"a truncation", "a/file", func(t *testing.T, dir string) { try(t, os.Truncate(dir+"/a/file", 0)) }, true},
		{"a mode", "a/file", func(t *testing.T, dir string) { try(t, os.Chmod(dir+"/a/file", 0o400)) }, true},
		{"a time", "a/file", func(t *testing.T, dir string) { try(t, os.Chtimes(dir+"/a/file", time.Time{}, time.Unix(1, 0))) }, true},
		{"a read", "a/file", func(t *testing.T, dir string) { _, err := os.ReadFile(dir + "/a/file"); try(t, err) }, false},
		{"a rename over it", "a/file", func(t *testing.T, dir string) { try(t, os.Rename(dir+"/a/other", dir+"/a/file")) }, true},
		{"a rename of it", "a/file", func(t *testing.T, dir string) { try(t, os.Rename(dir+"/a/file", dir+"/a/moved")) }, true},
		{"its removal", "a/file", func(t *testing.T, dir string) { try(t, os.Remove(dir+"/a/file")) }, true},
		{"the removal of its directory", "a/file", func(t *testing.T, dir string) { try(t, os.RemoveAll(dir+"/a")) }, true},
		{"a rename of its directory", "a/file", func(t *testing.T, dir string) { try(t, os.Rename(dir+"/a", dir+"/z")) }, true},
		{"a rename of a directory above it", "a/deep/er/file", func(t *testing.T, dir string) { try(t, os.Rename(dir+"/a", dir+"/z")) }, true},
		{"the mode of a directory above it", "a/deep/er/file", func(t *testing.T, dir string) { try(t, os.Chmod(dir+"/a", 0o500)) }, true},
		{"another file in its directory", "a/file", func(t *testing.T, dir string) { write(t, dir+"/a/new", "") }, false},
		{"another file next to its directory", "a/file", func(t *testing.T, dir string) { write(t, dir+"/new", "") }, false},
		{"its creation", "a/missing", func(t *testing.T, dir string) { write(t, dir+"/a/missing", "") }, true},
		{"the creation of its directory", "missing/file", func(t *testing.T, dir string) { write(t, dir+"/missing/file", "") }, true},
		{"a directory renamed to that of it", "missing/file", func(t *testing.T, dir string) { try(t, os.Rename(dir+"/a", dir+"/missing")) }, true},
		{"another directory", "missing/file", func(t *testing.T, dir string) { write(t, dir+"/present/file", "") }, false},
		{"a write to the target of a symlink", "link/file", func(t *testing.T, dir string) { write(t, dir+"/a/file", "new") }, true},
		{"a symlink to another directory", "link/file", func(t *testing.T, dir string) {
			try(t, os.Symlink("b", dir+"/next"))
			try(t, os.Rename(dir+"/next", dir+"/link"))
		}, true},
		{"a change next to the target of a symlink", "link/file", func(t *testing.T, dir string) { write(t, dir+"/a/new", "") }, false},
		{"a rename of the target of a symlink", "link/file", func(t *testing.T, dir string) { try(t, os.Rename(dir+"/a", dir+"/z")) }, true},
		{"the creation of the target of a symlink", "dangling", func(t *testing.T, dir string) { write(t, dir+"/a/none", "") }, true},
		{"a symlink in place of a loop", "loop/file", func(t *testing.T, dir string) {
			try(t, os.Remove(dir+"/loop"))
			try(t, os.Symlink("a", dir+"/loop"))
		}, true},
		{"a directory in place of a file", "a/file/below", func(t *testing.T, dir string) {
			try(t, os.Remove(dir+"/a/file"))
			try(t, os.Mkdir(dir+"/a/file", 0o700))
		}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir+"/a/file", "file")
			write(t, dir+"/a/other", "other")
			write(t, dir+"/a/deep/er/file", "deep")
			write(t, dir+"/b/file", "b")
			try(t, os.Link(dir+"/a/file", dir+"/a/hard"))
			try(t, os.Symlink("b/../a", dir+"/link"))
			try(t, os.Symlink(dir+"/a/none", dir+"/dangling"))
			try(t, os.Symlink("loop", dir+"/loop"))
			w := watch(t, filepath.Join(dir, tt.path), filepath.Join(dir, "never"))
			if w.Changed() {
				t.Fatal("changed before the change")
			}
			tt.change(t, dir)
			for range 2 {
				if got := w.Changed(); got != tt.want {
					t.Errorf("Changed returns %v, want %v", got, tt.want)
				}
			}
		})
	}
}

// A change is not lost among many events of other files.
func TestChangedAmongOtherEvents(t *testing.T) {
	dir := t.TempDir()
	write(t, dir+"/file", "")
	w := watch(t, dir+"/file")
	for i := range 100 {
		write(t, dir+"/other"+strconv.Itoa(i), "")
	}
	if w.Changed() {
		t.Error("other files count")
	}
	for i := range 3000 {
		try(t, os.Remove(dir+"/other"+strconv.Itoa(i%100)))
		write(t, dir+"/other"+strconv.Itoa(i%100), "")
	}
	write(t, dir+"/file", "new")
	if !w.Changed() {
		t.Error("the change is lost")
	}
}

func TestUnsupportedPaths(t *testing.T) {
	for _, path := range []string{"relative", "/proc/self/status", "/sys/kernel/none"} {
		w, err := pathwatch.New([]string{path})
		if !errors.Is(err, pathwatch.ErrUnsupported) {
			t.Errorf("%s: got %v, want %v", path, err, pathwatch.ErrUnsupported)
		}
		if err == nil {
			w.Close()
		}
	}
}
