package configfile

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadFileAndListFiles(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"a.yaml", "b.json", "c.txt", "d.toml"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte("12345"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	file := filepath.Join(dir, "a.yaml")
	if b, err := ReadFile(file, 5); err != nil || string(b) != "12345" {
		t.Errorf("within the limit: %q, %v", b, err)
	}
	if _, err := ReadFile(file, 4); err == nil || err.Error() != "file too large (limit 4 bytes)" {
		t.Errorf("above the limit: %v", err)
	}
	if _, err := ReadFile(dir, 5); err == nil {
		t.Error("a directory was read")
	}
	all, err := ListFiles(dir)
	if diff := cmp.Diff([]string{file, filepath.Join(dir, "b.json"), filepath.Join(dir, "d.toml")}, all); diff != "" || err != nil {
		t.Error(diff, err)
	}
	if one, err := ListFiles(filepath.Join(dir, "c.txt")); err != nil || len(one) != 1 {
		t.Errorf("a file: %v, %v", one, err)
	}
	if _, err := ListFiles(filepath.Join(dir, "gone")); err == nil {
		t.Error("a missing path was listed")
	}
}
