//go:build unix

package catalog_test

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/catalog"
)

func TestPipesDoNotBlockScan(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", ""), "b/": "", "c/real": "", "z/SKILL.md": doc("z", "")})
	for _, p := range []string{"b/SKILL.md", "evil.skill", "c/pipe", "evil.py"} {
		must(t, syscall.Mkfifo(filepath.Join(root, p), 0o644))
	}
	must(t, os.Symlink("pipe", filepath.Join(root, "c", "SKILL.md")))
	s := scan(t, root)
	if diff := cmp.Diff([]string{"a", "z"}, names(s.Skills())); diff != "" {
		t.Errorf("skills (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"b/SKILL.md unreadable", "c/SKILL.md unreadable", "evil.skill unreadable"}, codes(root, s.Problems())); diff != "" {
		t.Errorf("problems (-want +got):\n%s", diff)
	}
	pipe := catalog.NewArchive("x", catalog.User, filepath.Join(root, "evil.skill"))
	if got := codes(root, open(t, pipe).Snapshot().Problems()); !slices.Equal(got, []string{"evil.skill unreadable"}) {
		t.Errorf("as an archive: %q", got)
	}
}

func TestPipesDoNotBlockReadOrSearch(t *testing.T) {
	root := tree(t, map[string]string{"a/SKILL.md": doc("a", "")})
	c := open(t, dir(root))
	p := filepath.Join(root, "a", "SKILL.md")
	must(t, os.Remove(p))
	must(t, syscall.Mkfifo(p, 0o644))
	e := get(t, c.Snapshot(), "a")
	if _, _, err := c.Read(t.Context(), e); err == nil {
		t.Error("read: no error")
	}
	if hits, err := c.Search(t.Context(), "things", catalog.SearchOptions{}); err != nil || len(hits) != 1 {
		t.Errorf("search: %v, %v", hits, err)
	}
	if m, err := c.Manifest(t.Context(), e); err != nil || len(m) != 0 {
		t.Errorf("manifest: %v, %v", m, err)
	}
}

func TestSiblingDirectoriesAreNotSkillFiles(t *testing.T) {
	// A socket and a device are as little an archive or a SKILL.md.
	if _, err := os.Stat("/dev/null"); err != nil {
		t.Skip("no /dev/null")
	}
	d := catalog.NewArchive("x", catalog.User, "/dev/null")
	if got := open(t, d).Snapshot().Problems(); len(got) != 1 || got[0].Code != "unreadable" {
		t.Errorf("problems %v", got)
	}
}
