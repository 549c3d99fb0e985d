package privatefile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

func TestReplaceFile(t *testing.T) {
	dir := t.TempDir()
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	for _, text := range []string{"one", "two"} {
		if err := privatefile.ReplaceFile(root, "a", []byte(text)); err != nil {
			t.Fatal(err)
		}
		fi, statErr := os.Stat(filepath.Join(dir, "a"))
		got, err := os.ReadFile(filepath.Join(dir, "a"))
		if err := errors.Join(err, statErr); err != nil || string(got) != text || fi.Mode().Perm() != 0o600 {
			t.Errorf("the file has %q, %v", got, err)
		}
	}
	// A directory in the way is not replaced, and nothing else is left.
	if err := os.MkdirAll(filepath.Join(dir, "d", "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := privatefile.ReplaceFile(root, "d", nil); err == nil {
		t.Error("a directory is replaced")
	}
	if err := privatefile.ReplaceFile(root, "missing/a", nil); err == nil || errors.Is(err, fs.ErrExist) {
		t.Errorf("in a missing directory: %v", err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Errorf("the directory has %v, %v", entries, err)
	}
}
