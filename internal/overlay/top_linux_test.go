package overlay_test

import (
	"os"
	"path"
	"path/filepath"
	"testing"

	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/steering"
)

// A directory inside of one that steers programs steers them too.
func TestPathOfDirectory(t *testing.T) {
	for _, tt := range []struct {
		name string
		dir  string // in which the command changes file
		has  tree   // around it
		file string
		want string // reader, or "" for an ordinary file
	}{
		{"project", "proj", nil, "a/x.sh", ""},
		{"project, instructions", "proj", nil, "CLAUDE.md", "coding agents"},
		{"settings", "proj/.claude", nil, "settings.json", "Claude Code"},
		{"below settings", "proj/.claude/commands/a", nil, "x.md", "Claude Code"},
		{"another spelling", "proj/.Claude", nil, "settings.json", "Claude Code"},
		{"skill", "proj/.agents/skills/x", nil, "x.sh", "coding agents"},
		{"skill in skills", "proj/skills/x", tree{"proj/skills/x/SKILL.md": "f"}, "x.sh", "coding agents"},
		{"scripts of a skill", "proj/x/scripts", tree{"proj/x/SKILL.md": "f"}, "x.sh", "coding agents"},
		{"skill that the user develops", "x", tree{"x/SKILL.md": "f"}, "x.sh", ""},
		{"instructions of that skill", "x", tree{"x/SKILL.md": "f"}, "skill.md/a", "coding agents"},
		{"hooks", "proj/.git/hooks", nil, "post-checkout", "Git"},
		{"hooks of a bare repository", "backup/hooks", tree{"backup/HEAD": "f", "backup/objects": "d", "backup/refs": "d"}, "post-checkout", "Git"},
		{"objects", "proj/.git/objects", nil, "aa/bb", ""},
		{"instructions in objects", "proj/.git/objects", nil, "CLAUDE.md", "coding agents"},
		{"programs of Yarn", "proj/.yarn", nil, "releases/yarn.cjs", "Yarn"},
		{"cache of Yarn", "proj/.yarn", nil, "cache/a.zip", ""},
		{"dependency", "proj/node_modules/x", nil, "index.js", ""},
		{"instructions in a dependency", "proj/node_modules/x", nil, "CLAUDE.md", "coding agents"},
		{"dependency of a skill", "proj/node_modules/x/.claude/hooks", nil, "x.sh", "Claude Code"},
		{"project with the name of a file", "mise", nil, "config.toml", ""},
		{"worktree of an agent", "proj/.claude/worktrees/w", tree{"proj/.claude/worktrees/w/.git": "fgitdir: /p/.git/worktrees/w\n"}, "x.sh", ""},
		{"settings in a worktree", "proj/.claude/worktrees/w/.claude", tree{"proj/.claude/worktrees/w/.git": "fgitdir: /p/.git/worktrees/w\n"}, "x.sh", "Claude Code"},
		{"deep worktree", ".codex/worktrees/1/w", tree{".codex/worktrees/1/w/.git": "fgitdir: /p/.git/worktrees/w\n"}, "x.sh", ""},
		{"worktree of a bare repository", "proj/.git/w", tree{"proj/.git/w/.git": "fgitdir: ../worktrees/w\n"}, "x.sh", ""},
		{"no worktree", "proj/.claude/worktrees/w", nil, "x.sh", "Claude Code"},
		{"settings as a repository", "proj/.claude", tree{"proj/.claude/.git": "d"}, "x.sh", "Claude Code"},
		{"skill as a submodule", "proj/.claude/skills/x", tree{"proj/.claude/skills/x/.git": "fgitdir: ../../../.git/modules/x\n"}, "x.sh", "Claude Code"},
		{"skill as a worktree", "proj/.claude/skills/x", tree{"proj/.claude/skills/x/.git": "fgitdir: ../../../.git/worktrees/x\n"}, "x.sh", "Claude Code"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			around, merged := tree{}, tree{tt.file: "fnew"}
			for _, p := range []struct {
				tree tree
				path string
			}{{around, tt.dir}, {merged, path.Dir(tt.file)}} {
				for ; p.path != "."; p.path = path.Dir(p.path) {
					p.tree[p.path] = "d"
				}
			}
			for p, content := range tt.has {
				around[p] = content
			}
			top, upper := dirs(t, around, around)
			dir := filepath.Join(top, tt.dir)
			writeUpper(t, upper, readTree(t, dir), merged)
			check := func(class steering.Class, reader string) {
				t.Helper()
				if (class == steering.Steering) != (tt.want != "") || tt.want != "" && reader != tt.want && reader != "Claude Code" {
					t.Errorf("%v, read by %q, want %q", class, reader, tt.want)
				}
			}
			var change *overlay.Change
			s := read(t, dir, upper)
			for i := range s.List {
				if s.List[i].Path == tt.file {
					change = &s.List[i]
				}
			}
			if change == nil {
				t.Fatalf("changes are %q", summary(s))
			}
			check(change.Class, change.Reader)
			root, err := os.OpenRoot(dir)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			class, reader := overlay.Classify(root, tt.file)
			check(class, reader)
		})
	}
}

// Neither of two paths of a directory hides what the other tells.
func TestPathOfDirectoryWithSymlink(t *testing.T) {
	top, upper := dirs(t, tree{"proj": "d", "proj/.claude": "d", "proj/.agents": "lconfig", "proj/config": "d", "link": "lproj/.claude"}, nil)
	if err := os.WriteFile(upper+"/x.sh", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{"link", "proj/.agents"} {
		if s := read(t, filepath.Join(top, p), upper); len(s.List) == 0 || !s.List[0].Held() {
			t.Errorf("%s: %q", p, summary(s))
		}
	}
}
