package steering_test

import (
	"path"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/steering"
	"github.com/loadout-dev/loadout/internal/steering/steeringtest"
)

func TestClassify(t *testing.T) {
	if len(steeringtest.Files) != 59 {
		t.Errorf("%d steering files, want 59", len(steeringtest.Files))
	}
	for _, p := range steeringtest.Files {
		if c, reader := steering.Classify(p); c != steering.Steering || reader == "" {
			t.Errorf("%s: %v, read by %q", p, c, reader)
		}
		deep := "a/b c/" + p
		if c, _ := steering.Classify(deep); c != steering.Steering {
			t.Errorf("%s: %v", deep, c)
		}
		if c, _ := steering.Classify(strings.ToUpper(p)); c != steering.Steering {
			t.Errorf("%s: %v", strings.ToUpper(p), c)
		}
		if c, _ := steering.Classify("node_modules/" + p); c != steering.Dependency {
			t.Errorf("below node_modules, %s: %v", p, c)
		}
	}
	for want, paths := range map[steering.Class][]string{
		steering.Ordinary: {
			"README.md", "src/main.go", "package.json", "package-lock.json", "requirements.txt", "Makefile", "a.git/x", ".yarn/cache/x.zip", ".yarn/install-state.gz", "gitfile", "claude.txt", "agents/x.py", ".gitignore", ".gitattributes", ".env.example",
			"vendor/x/y.go", "target/debug/x", "dist/app.js", "data/claude.mdx", "skills/notes.txt",
			".git/objects/aa/bb", ".git/refs/heads/main", ".git/refs/heads/hooks", ".git/HEAD", ".git/index", ".git/index.lock", ".git/logs/HEAD", ".git/COMMIT_EDITMSG", ".git/ORIG_HEAD", ".git/FETCH_HEAD",
			".git/packed-refs", ".git/info/exclude", ".git/hooks/pre-commit.sample", ".git/description", "sub/.git/index", ".git/lfs/objects/aa",
		},
		steering.Dependency: {"node_modules/x/index.js", "web/node_modules/.bin/x", ".venv/bin/python", "venv/lib/python3/site-packages/x.py", "a/__pycache__/x.pyc"},
		steering.Steering: {
			".git", ".git/hooks", ".git /config", ".git./config", ".git::$INDEX_ALLOCATION/config", "GIT~1/config", ".g\u200cit/config", ".\u0441laude/../.claude/x", "claude.m\u200dd", "CLAUDE.md.", "CLAUDE~1.md",
			"CLAUDE~1/settings.json", ".claude/node_modules/x", ".git/node_modules/x", ".git/objects2/x", ".gitmodules:x", "\u017fub/.git/config", "s\u212aILL.MD/../.vscode", ".husky\u00ad/x", "node_modules/../AGENTS.md",
			".lintstagedrc.json", ".lintstagedrc.mts", "lint-staged.config.js", ".huskyrc.json", "lefthook.toml", ".config/lefthook.jsonc", ".lefthook-local.yml", "mise.local.toml", ".mise.local.toml", "mise.ci.toml", ".mise/config.toml", "mise/config.toml", ".config/mise/config.toml",
			".pnpmfile.mjs", "pnpmfile.cjs", ".pnp.cjs", ".pnp.loader.mjs", ".yarn/releases/yarn-4.cjs", ".yarn/plugins/x.cjs", "rust-toolchain.toml", ".luarc.json", ".pylintrc",
			".clinerules-code", ".roorules-code", ".kilocodemodes", ".kilocoderules", ".kilocoderules-code", ".pi/settings.json", ".env", ".qoder/rules/x.md", ".zencoder/rules/x.md",
			".git/config.lock", ".git/modules/objects2/config", ".git/modules/logs/config", ".git/modules/logs/hooks/post-checkout", ".git/worktrees/w/HEAD",
		},
	} {
		for _, p := range paths {
			if p = path.Clean(p); strings.HasPrefix(p, "..") {
				t.Fatal(p)
			}
			if c, _ := steering.Classify(p); c != want {
				t.Errorf("%q: %v, want %v", p, c, want)
			}
		}
	}
	if steering.IsDependencyDir("Node_Modules") {
		t.Error("another spelling is a directory of dependencies")
	}
}

// A directory is that of a repository by its content, whatever its name.
func TestGitDir(t *testing.T) {
	bare := steering.Top.Child("backup").GitDir()
	for name, want := range map[string]steering.Class{"config": steering.Steering, "hooks": steering.Steering, "HEAD": steering.Ordinary, "objects": steering.Ordinary, "x": steering.Steering} {
		if got := bare.Child(name).Class(); got != want {
			t.Errorf("%s: %v, want %v", name, got, want)
		}
	}
	if got := bare.Child("hooks").DirClass(); got != steering.Ordinary {
		t.Errorf("the directory hooks: %v", got)
	}
	if got := steering.Top.Child(".claude").DirClass(); got != steering.Steering {
		t.Errorf("the directory .claude: %v", got)
	}
	module := steering.Top.Child(".git").Child("modules").Child("a").Child("b").GitDir()
	for name, want := range map[string]steering.Class{"config": steering.Steering, "hooks": steering.Steering, "HEAD": steering.Ordinary, "objects": steering.Ordinary} {
		if got := module.Child(name).Class(); got != want {
			t.Errorf("%s of a submodule: %v, want %v", name, got, want)
		}
	}
	if got := steering.Top.Child("node_modules").GitDir().Child("config").Class(); got != steering.Dependency {
		t.Errorf("in a dependency: %v", got)
	}
}

// The directories that lead to the user's are judged by their names only if these
// begin with a dot.
func TestEnter(t *testing.T) {
	for path, want := range map[string]struct{ plain, git bool }{
		"home/u/project": {true, false}, "home/claude/agents": {true, false}, "home/node_modules/x": {true, false}, "u/.venv/x": {true, false},
		"u/.claude/x": {false, false}, "u/.git/x": {false, true}, "u/.git/hooks": {false, true}, "u/.git/modules/a": {false, true}, "u/.husky": {false, false},
	} {
		p := steering.Top
		for name := range strings.SplitSeq(path, "/") {
			p = p.Enter(name)
		}
		if p.InPlainDir() != want.plain || p.InGit() != want.git {
			t.Errorf("%s: plain %t, Git %t, want %+v", path, p.InPlainDir(), p.InGit(), want)
		}
	}
}

func TestSkillDir(t *testing.T) {
	s := steering.Top.SkillDir()
	for name, want := range map[string]steering.Class{"SKILL.md": steering.Steering, "scripts": steering.Steering, ".claude": steering.Steering, "node_modules": steering.Dependency} {
		if got := s.Child(name).Class(); got != want {
			t.Errorf("%s of a skill: %v, want %v", name, got, want)
		}
	}
	if got := s.Child("scripts").Child("run.py").Class(); got != steering.Steering {
		t.Errorf("a script of a skill: %v", got)
	}
	if got := steering.Top.Child("node_modules").SkillDir().Child("SKILL.md").Class(); got != steering.Dependency {
		t.Errorf("a skill in a dependency: %v", got)
	}
	if got := steering.Top.Hold("x").Child("a").Class(); got != steering.Steering {
		t.Errorf("in a directory that an agent obeys: %v", got)
	}
}

// Whatever the path: below a steering directory nothing is ordinary, and letter
// case never makes a steering file ordinary.
func FuzzClassify(f *testing.F) {
	for _, p := range steeringtest.Files {
		f.Add(p)
	}
	f.Add("a/node_modules/b")
	f.Fuzz(func(t *testing.T, p string) {
		class, reader := steering.Classify(p)
		if (class == steering.Steering) != (reader != "") {
			t.Errorf("%q: %v, read by %q", p, class, reader)
		}
		if c, _ := steering.Classify(".claude/" + p); c != steering.Steering {
			t.Errorf("%q below .claude: %v", p, c)
		}
		if c, _ := steering.Classify(p + "/.CLAUDE"); c == steering.Ordinary && !strings.Contains(strings.ToLower(p), "git") && !strings.Contains(p, "~") {
			t.Errorf("%q above .CLAUDE: %v", p, c)
		}
		if class == steering.Steering {
			if c, _ := steering.Classify(strings.ToUpper(p)); c != steering.Steering && strings.ToLower(strings.ToUpper(p)) == p {
				t.Errorf("%q in capitals: %v", p, c)
			}
		}
	})
}
