package setup

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
)

// A change of the configuration counts at once. While it cannot be read, there are no
// skills, because the change may have revoked any permission.
func TestConfigWatcher(t *testing.T) {
	p := newListedProject(t, t.TempDir())
	s := p.setup(t)
	file := config.UserFile(s.ConfigInput())
	write := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	c, err := s.LoadConfig(nil)
	if err != nil {
		t.Fatal(err)
	}
	rt, err := s.NewRuntime(t.Context(), c, false)
	if err != nil {
		t.Fatal(err)
	}
	defer rt.Close()
	set, _, err := s.NewToolset(t.Context(), c, rt, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	w := s.NewConfigWatcher(rt, c, set, nil)
	bundled := countSkills(rt)
	if bundled == 0 {
		t.Fatal("no bundled skills to disable")
	}
	for _, step := range []struct {
		what   string
		change func()
		skills int
		fails  bool
	}{
		{"unchanged", func() {}, bundled, false},
		{"a new file", func() { write("skills:\n  enabled: false\n") }, 0, false},
		{"unchanged again", func() {}, 0, false},
		{"enabled", func() { write("skills:\n  enabled: true\n") }, bundled, false},
		{"removed", func() { os.Remove(file) }, bundled, false},
		{"unreadable", func() { write("skills: [") }, 0, true},
		{"still unreadable", func() {}, 0, true},
		{"repaired", func() { write("{}\n") }, bundled, false},
		{"an unknown pattern", func() { write("skills:\n  allow: [\"[\"]\n") }, 0, true},
	} {
		step.change()
		err := w.Refresh(t.Context())
		if (err != nil) != step.fails {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := countSkills(rt); got != step.skills {
			t.Errorf("%s: %d skills, want %d", step.what, got, step.skills)
		}
	}
}

// countSkills returns the number of skills that are not disabled.
func countSkills(rt *loadout.Runtime) int {
	n := 0
	for range rt.Catalog().Snapshot().Entries() {
		n++
	}
	return n
}
