//go:build unix

package skill_test

import (
	"path/filepath"
	"syscall"
	"testing"

	"github.com/loadout-dev/loadout/skill"
)

func TestSpecialFilesAreReportedAndNeverOpened(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"SKILL.md": doc(ok)})
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Skip("no pipes here:", err)
	}
	m, ds, err := skill.ReadManifest(open(t, dir))
	if err != nil || len(m) != 1 || len(ds) != 1 || ds[0].Code != "file-special" {
		t.Errorf("%v %v %v", m, ds, err)
	}
}
