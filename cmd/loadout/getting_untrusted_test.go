package main

import (
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// clone creates an untrusted project with a lockfile and a matching skill.
func (p *getter) clone(from string) string {
	p.Helper()
	project := filepath.Join(p.home, "clone")
	p.types(0, "add", from, "--dir", filepath.Join(project, ".loadout", "skills"))
	if err := os.Mkdir(filepath.Join(project, ".git"), 0o755); err != nil {
		p.Fatal(err)
	}
	return project
}

// The lockfile of a project is untrusted: it cannot name locations on this machine or
// private addresses, and credentials are not used for it.
func TestUntrustedLockfile(t *testing.T) {
	g := remotetest.NewGit(t)
	document := func(text string) map[string]string {
		return map[string]string{"SKILL.md": "---\nname: notes\ndescription: Notes.\n---\n" + text + "\n"}
	}
	g.Commit(document("bait"))
	for _, tt := range []struct{ what, from, why string }{
		{"a repository of this machine", "file://" + filepath.ToSlash(g.Dir), "a local path"},
		{"a server of this machine", g.URL, "loopback"},
	} {
		t.Run(tt.what, func(t *testing.T) {
			p := newGetter(t)
			project := p.clone(tt.from)
			g.Commit(document("secret of " + tt.what))
			before := len(g.Requests())
			p.dir = project
			for _, args := range [][]string{{"update", "--check"}, {"update"}, {"update", "--scope", "project"}} {
				p.has(p.types(1, args...).all(), tt.why, "--trust")
			}
			if err := os.RemoveAll(filepath.Join(project, ".loadout", "skills", "notes")); err != nil {
				t.Fatal(err)
			}
			p.has(p.types(3, "add", "--frozen").all(), tt.why, "--trust")
			if _, err := os.Stat(filepath.Join(project, ".loadout", "skills", "notes")); err == nil {
				t.Error("it was got")
			}
			if got := g.Requests()[before:]; len(got) > 0 {
				t.Errorf("requests were made: %q", got)
			}
			p.types(0, "add", "--frozen", "--trust")
		})
	}
}

func TestProjectSkillsStayInProject(t *testing.T) {
	p := newGetter(t)
	p.writes("team/SKILL.md", "---\nname: tides\ndescription: Tides.\n---\nLook.\n")
	if err := os.MkdirAll(filepath.Join(p.home, "clone", ".git"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(p.home, "clone", ".loadout"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(p.home, "elsewhere"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(p.home, "elsewhere"), filepath.Join(p.home, "clone", ".loadout", "skills")); err != nil {
		t.Skip("no links here")
	}
	p.dir = filepath.Join(p.home, "clone")
	p.has(p.types(3, "add", "../team", "--scope", "project").all(), "leads out of the project")
	if left, err := os.ReadDir(filepath.Join(p.home, "elsewhere")); err != nil || len(left) > 0 {
		t.Errorf("%v, %v", left, err)
	}
	p.types(0, "add", "../team")
}

// If two processes add a skill with one name concurrently, one succeeds and the other
// reports it.
func TestConcurrentAdds(t *testing.T) {
	p := newGetter(t)
	for _, from := range []string{"x", "y"} {
		p.writes(from+"/SKILL.md", "---\nname: tides\ndescription: Tides.\n---\nFrom "+from+".\n")
	}
	for range 10 {
		codes := make([]int, 2)
		var both sync.WaitGroup
		for i, from := range []string{"./x", "./y"} {
			both.Go(func() { codes[i] = p.ends("add", from) })
		}
		both.Wait()
		if codes[0]+codes[1] != 1 {
			t.Fatalf("they end with %v", codes)
		}
		p.types(0, "verify")
		p.types(0, "remove", "tides")
	}
}
