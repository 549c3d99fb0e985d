package setup

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/usage"
)

// orderSetup is the setup of a user in a directory with the given files, and a
// catalog.
func orderSetup(t *testing.T, names ...string) (s *Setup, c *config.Config, snapshot func() *catalog.Snapshot) {
	t.Helper()
	home, project, skills := t.TempDir(), t.TempDir(), t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(project, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"alpha", "beta", "docker-images", "python-style", "zeta"} {
		dir := filepath.Join(skills, name)
		if err := os.Mkdir(dir, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "SKILL.md"), []byte("---\nname: "+name+"\ndescription: For all readme files.\n---\nx"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	all, err := catalog.New([]catalog.Source{catalog.NewDir("own", catalog.User, skills, nil)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := all.Reload(t.Context()); err != nil {
		t.Fatal(err)
	}
	t.Chdir(project)
	s = &Setup{Console: console.Console{Getenv: func(name string) string { return map[string]string{"HOME": home, "USERPROFILE": home}[name] }}}
	c = &config.Config{}
	c.Usage.Enabled = true
	return s, c, all.Snapshot
}

func use(s *Setup, c *config.Config, name string, times int, at time.Time) {
	for range times {
		s.usageLog(c).Note(usage.Use{Time: at, Interface: usage.InterfaceMCP, Kind: usage.KindLoad, Skill: name, Key: "own/" + name, Outcome: usage.OK})
	}
}

func TestSkillOrder(t *testing.T) {
	s, c, snapshot := orderSetup(t, "README.md", "main.py", "Dockerfile", "setup.py")
	now := time.Now()
	use(s, c, "zeta", 3, now.Add(-time.Hour))
	use(s, c, "alpha", 5, now.Add(-60*24*time.Hour)) // counts a quarter
	use(s, c, "beta", 9, now.Add(-100*24*time.Hour)) // does not count
	use(s, c, "gone", 9, now.Add(-time.Hour))
	got := s.SkillOrder(t.Context(), c, snapshot)()
	if want := []string{"own/zeta", "own/alpha", "own/docker-images", "own/python-style"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	c.Usage.Enabled = false
	if got := s.computeOrder(c, snapshot(), s.ConfigInput().WorkDir); !slices.Equal(got, []string{"own/docker-images", "own/python-style"}) {
		t.Errorf("without records: %q", got)
	}
}

// The order of a day does not change, in any process.
func TestSkillOrderOfADay(t *testing.T) {
	s, c, snapshot := orderSetup(t)
	synctest.Test(t, func(t *testing.T) {
		use(s, c, "zeta", 1, time.Now())
		long := s.SkillOrder(context.Background(), c, snapshot)
		check := func(want ...string) {
			t.Helper()
			for name, order := range map[string]func() []string{"a long process": long, "a new process": s.SkillOrder(context.Background(), c, snapshot)} {
				if got := order(); !slices.Equal(got, want) {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		}
		check("own/zeta")
		use(s, c, "alpha", 5, time.Now())
		check("own/zeta")
		time.Sleep(24 * time.Hour)
		check("own/alpha", "own/zeta")
	})
}

// Data of a newer program stays as it is.
func TestNewerSkillOrder(t *testing.T) {
	s, c, snapshot := orderSetup(t)
	file := filepath.Join(s.StateDir(), "skill-order.json")
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	for text, kept := range map[string]bool{`{"version": 2, "later": true}`: true, "damaged": false} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var notes strings.Builder
		s.Stderr = &notes
		use(s, c, "beta", 1, time.Now())
		if got := s.SkillOrder(t.Context(), c, snapshot)(); !slices.Equal(got, []string{"own/beta"}) {
			t.Errorf("%s: got %q", text, got)
		}
		if b, err := os.ReadFile(file); err != nil || (string(b) == text) != kept || strings.Contains(notes.String(), "unsupported version 2") != kept {
			t.Errorf("%s became %s, %v; notes %q", text, b, err, notes.String())
		}
	}
}
