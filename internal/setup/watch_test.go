package setup

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/policy"
)

// A change of the configuration counts at once. While it cannot be read, there are no
// skills, because the change may have revoked any permission.
func TestConfigWatcher(t *testing.T) {
	t.Run("stat", func(t *testing.T) { testConfigWatcher(t, false) })
	t.Run("events", func(t *testing.T) { testConfigWatcher(t, true) })
}

func testConfigWatcher(t *testing.T, events bool) {
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
	if events {
		w.watch()
		defer w.unwatch()
	}
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
		if events {
			requireWatched(t, w)
		}
		if (err != nil) != step.fails {
			t.Errorf("%s: %v", step.what, err)
		}
		if got := countSkills(rt); got != step.skills {
			t.Errorf("%s: %d skills, want %d", step.what, got, step.skills)
		}
	}
}

// requireWatched skips the test if the kernel does not report changes to w.
func requireWatched(t *testing.T, w *ConfigWatcher) {
	t.Helper()
	if w.paths == nil {
		t.Skip("the file system of the temporary directory does not report all changes")
	}
}

// After Refresh, the watcher has the current state of each file that counts,
// however the file was changed.
func TestConfigWatcherSeesEachChange(t *testing.T) {
	for _, step := range []struct {
		name   string
		change func(t *testing.T, home, project string)
	}{
		{"write", func(t *testing.T, home, _ string) {
			writeFile(t, home+"/.config/loadout/loadout.yaml", "skills: {enabled: false}")
		}},
		{"rename over", func(t *testing.T, home, _ string) {
			writeFile(t, home+"/new", "skills: {enabled: false}")
			try(t, os.Rename(home+"/new", home+"/.config/loadout/loadout.yaml"))
		}},
		{"delete", func(t *testing.T, home, _ string) { try(t, os.Remove(home+"/.config/loadout/loadout.yaml")) }},
		{"rename of a parent", func(t *testing.T, home, _ string) { try(t, os.Rename(home+"/.config", home+"/config")) }},
		{"symlink retarget", func(t *testing.T, home, project string) {
			writeFile(t, home+"/other/loadout.yaml", "skills: {enabled: false}")
			try(t, os.Remove(project+"/link.yaml"))
			try(t, os.Symlink(home+"/other/loadout.yaml", project+"/link.yaml"))
		}},
		{"new .loadout directory", func(t *testing.T, _, project string) {
			writeFile(t, project+"/.loadout/loadout.yaml", "policy: {rules: [deny]}")
		}},
		{"new file", func(t *testing.T, _, project string) {
			writeFile(t, project+"/loadout.yaml", "policy: {rules: [deny]}")
		}},
		{"nearer repository", func(t *testing.T, _, project string) { try(t, os.Mkdir(project+"/.git", 0o700)) }},
		{"repository above", func(t *testing.T, _, project string) {
			repository := filepath.Dir(project)
			writeFile(t, filepath.Dir(repository)+"/loadout.yaml", "policy: {rules: [deny]}")
			try(t, os.Mkdir(filepath.Dir(repository)+"/.git", 0o700))
			try(t, os.Remove(repository+"/.git"))
			try(t, os.Remove(repository+"/loadout.yaml"))
		}},
		{"rename of the working directory", func(t *testing.T, _, project string) { try(t, os.Rename(project, project+"2")) }},
		{"rename of a directory above the working directory", func(t *testing.T, _, project string) {
			try(t, os.Rename(filepath.Dir(project), filepath.Dir(project)+"2"))
		}},
	} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, events %v", step.name, events), func(t *testing.T) {
				dir := t.TempDir()
				home, project := dir+"/home", dir+"/above/repository/project"
				writeFile(t, home+"/.config/loadout/loadout.yaml", "skills: {enabled: true}")
				writeFile(t, filepath.Dir(project)+"/loadout.yaml", "{}")
				try(t, os.Mkdir(filepath.Dir(project)+"/.git", 0o700))
				try(t, os.Mkdir(project, 0o700))
				try(t, os.Symlink(home+"/.config/loadout/loadout.yaml", project+"/link.yaml"))
				s := listedProject{home, project}.setup(t)
				s.ConfigFile = "link.yaml"
				c, err := s.LoadConfig(nil)
				try(t, err)
				rt, err := s.NewRuntime(t.Context(), c, false)
				try(t, err)
				defer rt.Close()
				set, _, err := s.NewToolset(t.Context(), c, rt, nil, nil)
				try(t, err)
				defer set.Close()
				w := s.NewConfigWatcher(rt, c, set, nil)
				if events {
					w.watch()
					defer w.unwatch()
					try(t, w.Refresh(t.Context()))
					requireWatched(t, w)
				}
				before := w.stamps
				step.change(t, home, project)
				_ = w.Refresh(t.Context()) // fails for a link to a missing file
				if now := s.statConfigFiles(); !maps.Equal(w.stamps, now) || maps.Equal(before, now) {
					t.Errorf("got %v, want another state than before: %v", w.stamps, now)
				}
			})
		}
	}
}

func try(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// writeFile writes a file and creates its directory if necessary.
func writeFile(t *testing.T, path, text string) {
	t.Helper()
	try(t, os.MkdirAll(filepath.Dir(path), 0o700))
	try(t, os.WriteFile(path, []byte(text), 0o600))
}

// countSkills returns the number of skills that are not disabled.
func countSkills(rt *loadout.Runtime) int {
	n := 0
	for range rt.Catalog().Snapshot().Entries() {
		n++
	}
	return n
}

// A running program notices that the user no longer trusts the project, whose rules may
// have allowed calls, and that another server list ended the trust.
func TestConfigWatcherSeesEndOfTrust(t *testing.T) {
	for name, change := range map[string]func(t *testing.T, s *Setup, project string){
		"trust removed": func(t *testing.T, s *Setup, project string) {
			_, err := s.TrustStore().Untrust(t.Context(), project)
			try(t, err)
		},
		"other servers": func(t *testing.T, _ *Setup, project string) {
			writeFile(t, project+"/.mcp.json", `{"mcpServers": {}}`)
		},
	} {
		for _, events := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, events %v", name, events), func(t *testing.T) {
				dir := t.TempDir()
				home, project := dir+"/home", dir+"/project"
				writeFile(t, project+"/loadout.yaml", `policy: {rules: ["allow *"]}`)
				try(t, os.Mkdir(project+"/.git", 0o700))
				try(t, os.MkdirAll(home, 0o700))
				s := listedProject{home, project}.setup(t)
				read, err := s.ReadProject(project)
				try(t, err)
				_, err = s.TrustStore().Trust(t.Context(), project, read.Digest, policy.LocalUser())
				try(t, err)
				c, err := s.LoadConfig(nil)
				try(t, err)
				if !slices.Contains(c.Policy.Rules, "allow *") {
					t.Fatalf("the rules of the trusted project are %q", c.Policy.Rules)
				}
				rt, err := s.NewRuntime(t.Context(), c, false)
				try(t, err)
				defer rt.Close()
				set, _, err := s.NewToolset(t.Context(), c, rt, nil, nil)
				try(t, err)
				defer set.Close()
				w := s.NewConfigWatcher(rt, c, set, nil)
				if events {
					w.watch()
					defer w.unwatch()
					try(t, w.Refresh(t.Context()))
					requireWatched(t, w)
				}
				before := w.stamps
				change(t, s, project)
				try(t, w.Refresh(t.Context()))
				if now := s.statConfigFiles(); !maps.Equal(w.stamps, now) || maps.Equal(before, now) {
					t.Errorf("got %v, want another state than before: %v", w.stamps, now)
				}
				c, err = s.LoadConfig(nil)
				if try(t, err); slices.Contains(c.Policy.Rules, "allow *") {
					t.Errorf("its rules still apply: %q", c.Policy.Rules)
				}
			})
		}
	}
}
