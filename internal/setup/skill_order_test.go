package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
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
	home, project := t.TempDir(), t.TempDir()
	for _, name := range names {
		if err := os.WriteFile(filepath.Join(project, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(project)
	s = &Setup{Console: console.Console{Getenv: func(name string) string { return map[string]string{"HOME": home, "USERPROFILE": home}[name] }}}
	c = &config.Config{}
	c.Usage.Enabled = true
	return s, c, snapshotOf(t, "alpha", "beta", "docker-images", "python-style", "zeta")
}

// snapshotOf returns the snapshot function of a catalog with the given skills.
func snapshotOf(t *testing.T, names ...string) func() *catalog.Snapshot {
	t.Helper()
	skills := t.TempDir()
	for _, name := range names {
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
	return all.Snapshot
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

// Each set of skills has its own order in a directory, and changes of the skills
// lead to a new one.
func TestSkillOrderOfSets(t *testing.T) {
	s, c, snapshot := orderSetup(t)
	other := snapshotOf(t, "alpha", "beta", "docker-images", "python-style", "zeta")
	fewer := snapshotOf(t, "alpha", "zeta")
	check := func(order func() []string, want ...string) {
		t.Helper()
		if got := order(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	}
	start := func(of func() *catalog.Snapshot) func() []string { return s.SkillOrder(t.Context(), c, of) }
	check(start(fewer)) // none was used
	use(s, c, "zeta", 1, time.Now())
	use(s, c, "beta", 2, time.Now())
	check(start(snapshot), "own/beta", "own/zeta")
	check(start(fewer))
	use(s, c, "alpha", 9, time.Now())
	check(start(other), "own/beta", "own/zeta") // the same keys
	now := fewer()
	changing := start(func() *catalog.Snapshot { return now })
	check(changing)
	now = snapshot()
	check(changing, "own/beta", "own/zeta")

	for i := range 2 * maxOrderSets {
		start(snapshotOf(t, "alpha", "more-"+strconv.Itoa(i)))()
	}
	f, err := decodeOrder([]byte(readFile(t, filepath.Join(s.StateDir(), "skill-order.json"))))
	if err != nil || len(f.Orders) != maxOrderSets {
		t.Errorf("%d orders, %v; want %d", len(f.Orders), err, maxOrderSets)
	}
}

// The file of a program without sets opens. Its order is computed again for the set.
func TestOlderSkillOrder(t *testing.T) {
	s, c, snapshot := orderSetup(t)
	file := filepath.Join(s.StateDir(), "skill-order.json")
	old := fmt.Sprintf(`{"version":1,"projects":[{"project":"/other","day":"2026-01-02","skills":["own/zeta"]},{"project":%q,"day":%q,"skills":[]}]}`,
		s.ConfigInput().WorkDir, time.Now().Format(time.DateOnly))
	if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), os.WriteFile(file, []byte(old), 0o600)); err != nil {
		t.Fatal(err)
	}
	use(s, c, "beta", 1, time.Now())
	if got := s.SkillOrder(t.Context(), c, snapshot)(); !slices.Equal(got, []string{"own/beta"}) {
		t.Errorf("got %q", got)
	}
	f, err := decodeOrder([]byte(readFile(t, file)))
	if err != nil || len(f.Orders) != 2 || f.Orders[0].Project != "/other" || f.Orders[1].Set == "" {
		t.Errorf("file %+v, %v", f, err)
	}
}

// A file that cannot be read is replaced, and the user is told once. What a symlink
// refers to stays as it is.
func TestUnreadableSkillOrder(t *testing.T) {
	target := filepath.Join(t.TempDir(), "target")
	for reason, spoil := range map[string]func(file string) error{
		"too large":          func(file string) error { return os.WriteFile(file, bytes.Repeat([]byte(" "), maxOrderBytes+1), 0o600) },
		"readable by others": func(file string) error { return errors.Join(os.WriteFile(file, nil, 0o644), os.Chmod(file, 0o644)) },
		"symbolic link": func(file string) error {
			return errors.Join(os.WriteFile(target, []byte("x"), 0o600), os.Symlink(target, file))
		},
	} {
		if runtime.GOOS == "windows" && reason != "too large" {
			continue
		}
		s, c, snapshot := orderSetup(t)
		file := filepath.Join(s.StateDir(), "skill-order.json")
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o700), spoil(file)); err != nil {
			t.Fatal(err)
		}
		use(s, c, "beta", 1, time.Now())
		for first, want := range []string{"loadout: replaced the stored order of skills, which couldn't be read: " + file + " cannot be trusted: " + reason, ""} {
			var notes strings.Builder
			s.Stderr = &notes
			if got := s.SkillOrder(t.Context(), c, snapshot)(); !slices.Equal(got, []string{"own/beta"}) {
				t.Errorf("%s: got %q", reason, got)
			}
			if got := notes.String(); !strings.HasPrefix(got, want) || want == "" && got != "" {
				t.Errorf("%s, start %d: notes %q, want %q", reason, first+1, got, want)
			}
		}
		if fi, err := os.Lstat(file); err != nil || !fi.Mode().IsRegular() || runtime.GOOS != "windows" && fi.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v, %v", reason, fi, err)
		}
	}
	if runtime.GOOS != "windows" && readFile(t, target) != "x" {
		t.Error("the target of the link changed")
	}

	s, c, snapshot := orderSetup(t)
	var notes strings.Builder
	s.Stderr = &notes
	file := filepath.Join(s.StateDir(), "skill-order.json")
	if err := os.MkdirAll(filepath.Join(file, "x"), 0o700); err != nil {
		t.Fatal(err)
	}
	s.SkillOrder(t.Context(), c, snapshot)()
	if want := "loadout: read stored order of skills: " + file; !strings.HasPrefix(notes.String(), want) {
		t.Errorf("a directory: notes %q, want %q", notes.String(), want)
	}
}

func readFile(t *testing.T, file string) string {
	t.Helper()
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
