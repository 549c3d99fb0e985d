package workspace_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/internal/workspace"
	"github.com/loadout-dev/loadout/skill"
)

// A skill is saved completely, or the error lists all its problems.
func TestSaveSkill(t *testing.T) {
	type m = map[string]any
	file := func(path, content string) m { return m{"path": path, "content": content} }
	whole := m{"name": "tides", "description": "Reads tide tables: \"high\" and low.", "instructions": "Add one hour.\n\n---\nAlways."}
	with := func(more m) m {
		out := m{}
		for k, v := range whole {
			out[k] = v
		}
		for k, v := range more {
			out[k] = v
		}
		return out
	}
	for _, tt := range []struct {
		name  string
		there bool // a skill of that name
		args  m
		ok    bool
		want  []string
	}{
		{"new", false, with(m{"files": []any{file("scripts/high.py", "#!/usr/bin/env python3\nprint(1)\n")}}), true, []string{"Saved the skill tides with 2 files"}},
		{"there already", true, whole, false, []string{"set replace"}},
		{"in place of one", true, with(m{"replace": true}), true, []string{"Saved"}},
		{"a bad name", false, with(m{"name": "../Tides"}), false, []string{"name"}},
		{"nothing in it", false, m{"name": "tides", "description": " ", "instructions": ""}, false, []string{"missing description or instructions"}},
		{"files outside", false, with(m{"files": []any{file("../x", ""), file("/etc/x", ""), file(".git/hooks/x", ""), file("skill.md", "")}}), false,
			[]string{`"../x" is not inside`, `"/etc/x" is not inside`, ".git/hooks/x: protected", "duplicate file skill.md"}},
		{"too much", false, with(m{"files": []any{file("a.md", strings.Repeat("x", workspace.MaxSkillBytes))}}), false, []string{"skill too large"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			project, saved := t.TempDir(), 0
			dir := filepath.Join(project, ".loadout", "skills", "tides")
			if tt.there {
				if err := os.MkdirAll(dir, 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(filepath.Join(dir, "old.md"), []byte("old"), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			call, _ := open(t, nil, &workspace.Options{Project: project, OnSave: func(context.Context, string) error { saved++; return nil }})
			text, ok := call(toolname.SaveSkill, tt.args)
			if ok != tt.ok {
				t.Fatalf("saved %t: %s", ok, text)
			}
			for _, part := range tt.want {
				if !strings.Contains(text, part) {
					t.Errorf("got %q, want %q", text, part)
				}
			}
			left, _ := filepath.Glob(filepath.Join(project, ".loadout", "skills", ".*"))
			if len(left) > 0 {
				t.Errorf("it leaves %q", left)
			}
			if !tt.ok {
				if saved > 0 || strings.Contains(text, project) {
					t.Errorf("saved %d times: %s", saved, text)
				}
				return
			}
			s, ds, err := skill.Parse(os.DirFS(dir), "tides")
			if err != nil || !ds.Valid() || s.Description != whole["description"] || !strings.Contains(s.Instructions, "Always.") {
				t.Errorf("what is saved: %+v, %v, %v", s, ds, err)
			}
			if _, err := os.Stat(filepath.Join(dir, "old.md")); err == nil || saved != 1 {
				t.Errorf("the old one is there still, or nobody is reported: %v, %d", err, saved)
			}
		})
	}
}

// A skill is never saved through a symlink, because it may lead to files that
// programs execute.
func TestSaveSkillFollowsNoSymlink(t *testing.T) {
	project, other := t.TempDir(), t.TempDir()
	if err := os.Symlink(other, filepath.Join(project, ".loadout")); err != nil {
		t.Skip(err)
	}
	call, _ := open(t, nil, &workspace.Options{Project: project})
	if text, ok := call(toolname.SaveSkill, map[string]any{"name": "tides", "description": "Reads.", "instructions": "Read."}); ok {
		t.Errorf("got %q", text)
	}
	if all, _ := os.ReadDir(other); len(all) > 0 {
		t.Errorf("there is %v", all)
	}
}

// A read-only file is not replaced.
func TestReadOnlyFileStays(t *testing.T) {
	call, dir := open(t, map[string]string{"a.txt": "mine"}, nil)
	if err := os.Chmod(filepath.Join(dir, "a.txt"), 0o444); err != nil {
		t.Fatal(err)
	}
	if text, ok := call("write_file", map[string]any{"path": "a.txt", "content": "other"}); ok || !strings.Contains(text, "read-only") {
		t.Errorf("got %q", text)
	}
}
