package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/operator"
)

// newSetup returns a setup with the given state directory.
func newSetup(t *testing.T, state string) *Setup {
	return &Setup{Operator: operator.File{Root: t.TempDir()}, Console: console.Console{Getenv: func(name string) string {
		return map[string]string{"LOADOUT_STATE": state}[name]
	}}}
}

// There is a record of sandbox tests only if there is a state directory, and if the
// user decides how much a sandbox isolates.
func TestProbeRecord(t *testing.T) {
	if newSetup(t, t.TempDir()).ProbeRecord() == nil {
		t.Error("no record with a state directory")
	}
	t.Setenv("HOME", "")
	t.Setenv("USERPROFILE", "")
	if newSetup(t, "").ProbeRecord() != nil {
		t.Error("a record without a state directory")
	}
	managed := newSetup(t, t.TempDir())
	file := managed.Operator.Path()
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte("policy: {presence: managed}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if managed.ProbeRecord() != nil { // an unreadable file counts as managed too
		t.Error("a record on a managed machine")
	}
}
