package loadout_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout"
)

func TestWorkspaceContainsNoConfiguration(t *testing.T) {
	home := t.TempDir()
	state, project := filepath.Join(home, "state", "loadout"), filepath.Join(home, "project")
	for _, d := range []string{state, project} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	link := filepath.Join(project, "link")
	if err := os.Symlink(filepath.Join(home, "state"), link); err != nil {
		t.Fatal(err)
	}
	s := anyShop(t, files{"a/SKILL.md": skillText("a", "x")}, func(_ *shop, o *loadout.Options) {
		o.Scripts.ProtectedDirs = []string{state, filepath.Join(home, "config", "loadout.yaml"), ""}
	})
	for dir, ok := range map[string]bool{
		project: true, home: false, filepath.Dir(state): false, state: false, link: false, "/": false, "project": false, filepath.Join(home, "none"): false,
	} {
		if err := s.CheckWorkspace(dir); (err == nil) != ok {
			t.Errorf("%s: %v", dir, err)
		} else if err != nil && dir != filepath.Join(home, "none") && !errors.Is(err, loadout.ErrWorkspace) {
			t.Errorf("%s: %v is no ErrWorkspace", dir, err)
		}
	}
	if err := os.Mkdir(filepath.Join(state, "sub"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := s.CheckWorkspace(filepath.Join(state, "sub")); !errors.Is(err, loadout.ErrWorkspace) {
		t.Errorf("below what is protected: %v", err)
	}
}
