package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/remote/remotetest"
)

// A full disk changes nothing, and the advice is to free space.
func TestDiskFull(t *testing.T) {
	g := remotetest.NewGit(t)
	g.Commit(map[string]string{"a/SKILL.md": plainSkill("a", "One."), "b/SKILL.md": plainSkill("b", "One.")})
	p := newGetter(t)
	if err := os.MkdirAll(p.installed("."), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("none", p.installed("."), "tmpfs", 0, "size=256k"); err != nil {
		t.Skipf("no file system of a small size, which takes root: %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(p.installed("."), 0); err != nil {
			t.Error(err)
		}
	})
	p.types(0, "add", g.URL, "--all")
	before := p.skills()
	large := strings.Repeat("0123456789abcde\n", 20_000)
	g.Commit(map[string]string{"a/SKILL.md": plainSkill("a", "Two."), "b/large.txt": large, "c/SKILL.md": plainSkill("c", "One."), "c/large.txt": large})
	for _, args := range [][]string{{"update"}, {"add", g.URL, "--skill", "c"}, {"add", g.URL, "--skill", "b", "--force"}} {
		p.has(p.types(1, args...).stderr, "no space left")
		if diff := cmp.Diff(before, p.skills()); diff != "" {
			t.Errorf("after loadout %v it is another:\n%s", args, diff)
		}
		p.types(0, "verify")
	}
	p.types(0, "update", "a")
	p.has(p.file("a/SKILL.md"), "Two.")
}
