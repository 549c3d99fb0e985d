package execution_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/heldchange"
	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/steering/steeringtest"
)

func TestHeldChangesAreStored(t *testing.T) { asBoth(t, testHeldChangesAreStored) }

// testHeldChangesAreStored applies later what a command changed while nobody
// could be asked.
func testHeldChangesAreStored(t *testing.T) {
	for name, exist := range map[string]bool{"new": false, "existing": true} {
		t.Run(name, func(t *testing.T) {
			b, store := newBackend(t), heldchange.New(filepath.Join(t.TempDir(), "changes"))
			files := map[string]string{"AGENTS.md": "gone", "sub/CLAUDE.md": "old"}
			if exist {
				for _, p := range steeringtest.Files {
					files[p] = "theirs"
				}
			}
			dir := newWorkspace(t, files)
			var script strings.Builder
			for _, p := range steeringtest.Files {
				script.WriteString("mkdir -p \"$(dirname '" + p + "')\"; echo new > '" + p + "'\n")
			}
			script.WriteString("rm AGENTS.md; echo new > sub/CLAUDE.md; ln -s README .cursorrules 2>/dev/null || true")
			res, err := execution.New(execution.Options{Sandbox: b}).RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-ec", script.String()}, Workspace: dir, Access: execution.Overlay, HeldChanges: store})
			if err != nil {
				t.Fatal(err)
			}
			if notes := strings.Join(res.Notes, "\n"); !strings.Contains(notes, "the user can review and apply them: loadout changes") {
				t.Errorf("notes %q", notes)
			}
			list, err := store.List(dir)
			if err != nil || len(list) < len(steeringtest.Files) {
				t.Fatalf("%d changes stored, %v", len(list), err)
			}
			if err := os.WriteFile(filepath.Join(dir, "sub/CLAUDE.md"), []byte("newer"), 0o644); err != nil {
				t.Fatal(err)
			}
			for _, c := range list {
				if err := c.Apply(dir); errors.Is(err, overlay.ErrStale) != (c.Path == "sub/CLAUDE.md") || err != nil && c.Path != "sub/CLAUDE.md" {
					t.Errorf("apply %s %s: %v", c.Op, c.Path, err)
				}
			}
			for _, p := range steeringtest.Files {
				if data, err := os.ReadFile(filepath.Join(dir, p)); string(data) != "new\n" && p != "AGENTS.md" && p != "sub/CLAUDE.md" {
					t.Errorf("%s: %q, %v", p, data, err)
				}
			}
			if data, _ := os.ReadFile(filepath.Join(dir, "sub/CLAUDE.md")); string(data) != "newer" {
				t.Errorf("stale change applied: %q", data)
			}
			if _, err := os.Stat(filepath.Join(dir, "AGENTS.md")); err == nil {
				t.Error("AGENTS.md was not deleted")
			}
			if err := store.Remove(t.Context(), dir, list); err != nil {
				t.Fatal(err)
			}
			if left, err := store.List(dir); err != nil || len(left) > 0 {
				t.Errorf("left %v, %v", left, err)
			}
		})
	}
}

// What the user declined is not stored.
func TestDeclinedChangesAreNotStored(t *testing.T) {
	b, store := newBackend(t), heldchange.New(filepath.Join(t.TempDir(), "changes"))
	dir := newWorkspace(t, nil)
	_, err := execution.New(execution.Options{Sandbox: b}).RunCommand(t.Context(), &execution.Command{Args: []string{"/bin/sh", "-ec", "echo evil > CLAUDE.md"}, Workspace: dir, Access: execution.Overlay, HeldChanges: store,
		Agree: func(context.Context, []execution.HeldChange) (bool, error) { return false, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := store.List(dir); err != nil || len(list) > 0 {
		t.Errorf("stored %v, %v", list, err)
	}
}
