package remotetest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

func TestGitServerServesGit(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"a.txt": "old", "gone/b.txt": "b"})
	commit := g.Push(remotetest.Change{Files: map[string]string{"a.txt": "new"}, Remove: []string{"gone"}})
	g.Annotate("v1", commit)
	clone := func(url string) (string, error) {
		dir := filepath.Join(t.TempDir(), "clone")
		cmd := exec.Command("git", "clone", "--quiet", "--branch=v1", "--", url, dir)
		cmd.Env = append(os.Environ(), "GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL="+os.DevNull, "GIT_TERMINAL_PROMPT=0", "LC_ALL=C")
		out, err := cmd.CombinedOutput()
		if err != nil {
			return string(out), err
		}
		a, err := os.ReadFile(filepath.Join(dir, "a.txt"))
		if _, err := os.Stat(filepath.Join(dir, "gone")); err == nil {
			t.Error("what was removed is there")
		}
		return string(a), err
	}
	if got, err := clone(g.URL); err != nil || got != "new" {
		t.Errorf("got %q, %v", got, err)
	}
	g.Redirect("/old.git", g.URL)
	if got, err := clone(g.Path("/old.git")); err != nil || got != "new" {
		t.Errorf("by a redirect: %q, %v", got, err)
	}
	if !slices.ContainsFunc(g.Requests(), func(r string) bool { return strings.HasPrefix(r, "POST /repo.git/git-upload-pack") }) {
		t.Errorf("requests: %q", g.Requests())
	}
	g.Private("right")
	if got, err := clone(g.URL); err == nil || !strings.Contains(got, "could not read Username") {
		t.Errorf("without a token: %q, %v", got, err)
	}
	if got, err := clone(strings.Replace(g.URL, "http://", "http://me:right@", 1)); err != nil || got != "new" {
		t.Errorf("with the token: %q, %v", got, err)
	}
	g.Private()
	g.Cut(10)
	if got, err := clone(g.URL); err == nil {
		t.Errorf("cut: %q", got)
	}
	g.Cut(0)
	g.Forbid(true)
	if got, err := clone(g.URL); err == nil || !strings.Contains(got, "403") {
		t.Errorf("forbidden: %q, %v", got, err)
	}
}
