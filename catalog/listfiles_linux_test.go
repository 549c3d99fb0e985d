package catalog

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

func TestDirectoryReplacedDuringListingDoesNotLeadOutOfSkill(t *testing.T) {
	root, away := t.TempDir(), t.TempDir()
	writeSkill(t, away, "secret")
	for i := range 10 {
		writeSkill(t, fmt.Sprintf("%s/d%d", root, i), "x")
		if err := os.WriteFile(fmt.Sprintf("%s/f%d", root, i), nil, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	d, err := openDir(root)
	if err != nil {
		t.Fatal(err)
	}
	defer d.close()
	var l fileList
	if !l.read(d, 0, 0) {
		t.Fatal("the directory cannot be read")
	}
	for i := range 10 {
		dir := fmt.Sprintf("%s/d%d", root, i)
		if err := os.Rename(dir, dir+"-was"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(away, dir); err != nil {
			t.Fatal(err)
		}
	}
	ok := l.visit(d, 0, 0, 0, len(l.entries))
	if paths := string(l.paths); ok || strings.Contains(paths, "SKILL.md") {
		t.Errorf("listed %q; want nothing from a symlink", paths)
	}
}
