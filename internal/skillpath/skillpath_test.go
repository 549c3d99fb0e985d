package skillpath_test

import (
	"io/fs"
	"testing"

	"github.com/loadout-dev/loadout/internal/skillpath"
)

func TestIgnoredFiles(t *testing.T) {
	for name, want := range map[string]bool{
		".git": true, ".hg": true, ".svn": true, "__pycache__": true, ".DS_Store": true, "Thumbs.db": true, "__MACOSX": true,
		"a~": true, ".#a": true, "#a#": true, ".a.swp": true, ".a.swo": true,
		".gitignore": false, ".env": false, "#": false, "a.swp": false, ".swift": false, "git": false, "scripts": false, ".swim": false,
		"##": true, "#a": false, "a#": false, "~": true, ".#": true, ".": false, "": false, ".abcd": false, ".swx": true,
	} {
		if skillpath.IsIgnored(name) != want {
			t.Errorf("%s: want %v", name, want)
		}
	}
}

func TestScripts(t *testing.T) {
	for _, tt := range []struct {
		path string
		mode fs.FileMode
		want bool
	}{
		{"scripts/run.py", 0o644, true}, {"RUN.PY", 0o644, true}, {"a.mjs", 0o400, true}, {"a.wasm", 0o644, true},
		{"run.pyc", 0o644, false}, {"py", 0o644, false}, {"notes.md", 0o644, false}, {"notes.md", 0o666, false},
		{"tool", 0o100, true}, {"tool", 0o010, true}, {"tool", 0o001, true}, {"tool", 0o755, true},
	} {
		if got := skillpath.IsScript(tt.path, tt.mode); got != tt.want {
			t.Errorf("IsScript(%q, %v) = %t", tt.path, tt.mode, got)
		}
	}
}

func TestIsSkillFile(t *testing.T) {
	for name, want := range map[string]bool{
		"SKILL.md": true, "skill.md": true, "Skill.MD": true, "SKILL.mdx": false, "SKILLS.md": false, "README.m": false, "x/SKILL.md": false, "": false,
		"\u017fkill.md": false, // a letter that equals s in another case, but is longer
	} {
		if got := skillpath.IsSkillFile(name); got != want {
			t.Errorf("IsSkillFile(%q) = %t", name, got)
		}
	}
}
