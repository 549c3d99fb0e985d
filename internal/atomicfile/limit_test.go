//go:build unix

package atomicfile_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/atomicfile"
	"github.com/loadout-dev/loadout/internal/limittest"
)

// On a full disk, and with too many open files, the old file is unchanged.
func TestLimitsKeepTheFile(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "f")
	write := func(text string) error { return atomicfile.Write(path, []byte(text), 0o600) }
	if err := write("old"); err != nil {
		t.Fatal(err)
	}
	unchanged := func(err error) {
		t.Helper()
		if b, readErr := os.ReadFile(path); readErr != nil || string(b) != "old" {
			t.Errorf("after %v, content %q, %v", err, b, readErr)
		}
		if all, _ := os.ReadDir(dir); len(all) != 1 {
			t.Errorf("after %v, temporary files remain: %v", err, all)
		}
	}
	limittest.FullDisk(t, func() {
		err := write(strings.Repeat("x", limittest.MaxFileSize+1))
		if err == nil {
			t.Error("no error of a full disk")
		}
		unchanged(err)
	})
	limittest.EachOpen(t, func() error { return write("new") }, unchanged)
	if b, err := os.ReadFile(path); err != nil || string(b) != "new" {
		t.Errorf("at the end, content %q, %v", b, err)
	}
}
