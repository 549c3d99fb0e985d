//go:build unix

package workspace_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/workspace"
)

// With too many open files, a tool reports an error or has done its work, and neither
// temporary files nor half of a skill is left.
func TestToolsWithinLimits(t *testing.T) {
	project := t.TempDir()
	call, dir := open(t, map[string]string{"a.txt": "old"}, &workspace.Options{Project: project})
	do := func(name string, args map[string]any) func() error {
		return func() error {
			if text, ok := call(name, args); !ok {
				return errors.New(text)
			}
			return nil
		}
	}
	clean := func(err error) {
		t.Helper()
		for _, root := range []string{dir, project} {
			filepath.WalkDir(root, func(p string, e os.DirEntry, walk error) error {
				if walk == nil && (strings.HasSuffix(p, ".tmp") || strings.HasPrefix(e.Name(), ".new-") && e.Type().IsRegular()) {
					t.Errorf("after %v, %s is left", err, p)
				}
				return nil
			})
		}
	}
	limittest.EachOpen(t, do("write_file", map[string]any{"path": "sub/dir/b.txt", "content": "new"}), clean)
	limittest.EachOpen(t, do("edit_file", map[string]any{"path": "a.txt", "old": "old", "new": "changed"}), func(err error) {
		clean(err)
		if b, _ := os.ReadFile(filepath.Join(dir, "a.txt")); string(b) != "old" {
			t.Errorf("after %v, the file is %q", err, b)
		}
	})
	limittest.EachOpen(t, do("read_file", map[string]any{"path": "a.txt"}), clean)
	limittest.EachOpen(t, do(toolname.SaveSkill, map[string]any{"name": "tides", "description": "Reads tide tables.", "instructions": "Add one hour.", "files": []any{map[string]any{"path": "scripts/run.sh", "content": "#!/bin/sh\n"}}}), func(err error) {
		if _, statErr := os.Stat(filepath.Join(project, ".loadout", "skills", "tides")); statErr == nil {
			t.Errorf("after %v, the skill is there", err)
		}
	})
	for p, want := range map[string]string{filepath.Join(dir, "a.txt"): "changed", filepath.Join(dir, "sub/dir/b.txt"): "new", filepath.Join(project, ".loadout/skills/tides/scripts/run.sh"): "#!/bin/sh\n"} {
		if b, err := os.ReadFile(p); err != nil || string(b) != want {
			t.Errorf("%s has %q, %v", p, b, err)
		}
	}
	if fi, err := os.Stat(filepath.Join(project, ".loadout/skills/tides/scripts/run.sh")); err != nil || fi.Mode().Perm()&0o100 == 0 {
		t.Errorf("the script is not executable: %v, %v", fi.Mode(), err)
	}
}
