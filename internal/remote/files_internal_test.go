package remote

import (
	"io/fs"
	"testing"
)

// Files has everything below the directory of the location, and nothing else.
func TestFilesOfALocation(t *testing.T) {
	root := onDisk(t, map[string]string{"a/pdf/SKILL.md": doc("pdf"), "a/notes.txt": "note", "b.txt": "other"})
	o, err := New(nil).Open(t.Context(), Location{Kind: Local, URL: root, Dir: "a"})
	if err != nil {
		t.Fatal(err)
	}
	defer o.Close()
	if text, err := fs.ReadFile(o.Files(), "notes.txt"); string(text) != "note" {
		t.Errorf("read %q, %v", text, err)
	}
	if _, err := fs.Stat(o.Files(), "b.txt"); err == nil {
		t.Error("a file outside of the directory is listed")
	}
}
