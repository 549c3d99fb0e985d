//go:build unix

package chat

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Code in the sandbox can put anything in the place of a file.
func TestFolderAccessesOnlyFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "directory"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	f := &folder{root: root}
	for _, name := range []string{"directory", "pipe", "link"} {
		if err := f.writeFile(name, []byte("x")); err == nil {
			t.Errorf("writeFile(%q) succeeded", name)
		}
		if b, err := f.readFile(name); err == nil {
			t.Errorf("readFile(%q) returned %q", name, b)
		}
	}
	want := strings.Repeat("x", MaxFile+1)
	if err := f.writeFile("file", []byte(want+"y")); err != nil {
		t.Fatal(err)
	}
	if b, err := f.readFile("file"); err != nil || string(b) != want {
		t.Errorf("readFile returned %d bytes, %v; want the first %d", len(b), err, len(want))
	}
}
