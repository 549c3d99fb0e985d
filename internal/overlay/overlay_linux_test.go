package overlay_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/steering"
)

// tree maps paths to contents: "d" for a directory, "f" and text for a file,
// "l" and the target for a symlink. It contains the parents of each path.
type tree map[string]string

func (tr tree) write(t testing.TB, dir string) {
	t.Helper()
	for _, p := range slices.Sorted(maps.Keys(tr)) {
		full := filepath.Join(dir, p)
		var err error
		switch content := tr[p]; content[0] {
		case 'd':
			err = os.Mkdir(full, 0o755)
		case 'f':
			err = os.WriteFile(full, []byte(content[1:]), 0o644)
		case 'l':
			err = os.Symlink(content[1:], full)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func readTree(t testing.TB, dir string) tree {
	t.Helper()
	out := tree{}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || p == dir {
			return err
		}
		rel, _ := filepath.Rel(dir, p)
		switch d.Type() {
		case fs.ModeDir:
			out[rel] = "d"
		case fs.ModeSymlink:
			target, err := os.Readlink(p)
			if err != nil {
				return err
			}
			out[rel] = "l" + target
		default:
			data, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			out[rel] = "f" + string(data)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// writeUpper writes the upper directory with which an overlay of lower shows
// merged, as the kernel does.
func writeUpper(t testing.TB, dir string, lower, merged tree) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	all := maps.Clone(lower)
	maps.Copy(all, merged)
	for _, p := range slices.Sorted(maps.Keys(all)) {
		was, is, full := lower[p], merged[p], filepath.Join(dir, p)
		parent := path.Dir(p)
		switch {
		case is == was && is != "d", parent != "." && merged[parent] != "d":
			continue
		case parent != "." && is == "" && lower[parent] != "d": // the new parent hides what was there
			continue
		}
		must(os.MkdirAll(filepath.Dir(full), 0o755))
		switch {
		case is == "":
			must(unix.Mknod(full, unix.S_IFCHR, 0))
		case is == "d" && was == "d":
			must(os.MkdirAll(full, 0o755))
		case is == "d":
			must(os.MkdirAll(full, 0o755))
			must(unix.Setxattr(full, "user.overlay.opaque", []byte("y"), 0))
		default:
			tree{filepath.Base(p): is}.write(t, filepath.Dir(full))
		}
	}
}

func dirs(t testing.TB, lower, merged tree) (dir, upper string) {
	t.Helper()
	top, err := os.MkdirTemp("", "overlay")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	dir, upper = filepath.Join(top, "lower"), filepath.Join(top, "upper")
	if err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(upper, 0o755)); err != nil {
		t.Fatal(err)
	}
	lower.write(t, dir)
	writeUpper(t, upper, lower, merged)
	return dir, upper
}

func read(t testing.TB, lower, upper string) *overlay.Set {
	t.Helper()
	s, err := overlay.Read(lower, upper, time.Now())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func ordinary(c *overlay.Change) bool { return c.Ordinary() }
func all(*overlay.Change) bool        { return true }

func summary(s *overlay.Set) (out []string) {
	for _, c := range s.List {
		line := fmt.Sprintf("%s %s", c.Op, c.Path)
		if c.Held() {
			line = "held: " + line
		}
		if c.Refused != "" {
			line += ": " + c.Refused
		}
		out = append(out, line)
	}
	return out
}

func TestApply(t *testing.T) {
	for _, tt := range []struct {
		name           string
		lower, merged  tree
		list           []string
		ordinary, both tree // nil: merged
	}{
		{"files", tree{"a": "f1", "b": "f2", "d": "d", "d/x": "f"}, tree{"a": "f3", "c": "fnew", "d": "d", "d/x": "f", "d/y": "f"}, []string{"modify a", "delete b", "create c", "create d/y"}, nil, nil},
		{"a directory removed", tree{"d": "d", "d/e": "d", "d/e/x": "f"}, tree{}, []string{"delete d/e/x", "delete d/e", "delete d"}, nil, nil},
		{"a directory made again", tree{"d": "d", "d/e": "d", "d/e/x": "f"}, tree{"d": "d", "d/y": "f"}, []string{"delete d/e/x", "delete d/e", "create d/y"}, nil, nil},
		{"types", tree{"a": "f", "b": "d", "b/x": "f", "c": "la"}, tree{"a": "d", "a/y": "f", "b": "f", "c": "f"}, []string{"delete a", "create a", "create a/y", "delete b/x", "delete b", "create b", "delete c", "create c"}, nil, nil},
		{"steering files", tree{"CLAUDE.md": "f1", ".git": "d", ".git/config": "f", ".git/index": "f1"}, tree{"CLAUDE.md": "f2", ".git": "d", ".git/index": "f2", ".git/hooks": "d", ".git/hooks/x": "f", ".agents": "d", ".agents/x": "f"},
			[]string{"held: create .agents", "held: create .agents/x", "held: delete .git/config", "create .git/hooks", "held: create .git/hooks/x", "modify .git/index", "held: modify CLAUDE.md"},
			tree{"CLAUDE.md": "f1", ".git": "d", ".git/config": "f", ".git/index": "f2", ".git/hooks": "d"}, nil},
		{"a directory with a steering file removed", tree{"d": "d", "d/AGENTS.md": "f", "d/x": "f"}, tree{}, []string{"held: delete d/AGENTS.md", "delete d/x", "held: delete d"}, tree{"d": "d", "d/AGENTS.md": "f"}, nil},
		{"files of a skill", tree{"s": "d", "s/x": "d", "s/x/SKILL.md": "f", "s/x/refs": "d", "s/x/refs/a.md": "f1", "s/x/run.sh": "f", "s/y": "f"}, tree{"s": "d", "s/x": "d", "s/x/SKILL.md": "f", "s/x/refs": "d", "s/x/refs/a.md": "f2", "s/x/refs/b.md": "f", "s/x/node_modules": "d", "s/x/node_modules/z": "f", "s/y": "f2", "n": "d", "n/SKILL.md": "f", "n/a": "f"},
			[]string{"create n", "held: create n/SKILL.md", "held: create n/a", "create s/x/node_modules", "create s/x/node_modules/z", "held: modify s/x/refs/a.md", "held: create s/x/refs/b.md", "held: delete s/x/run.sh", "modify s/y"},
			tree{"s": "d", "s/x": "d", "s/x/SKILL.md": "f", "s/x/refs": "d", "s/x/refs/a.md": "f1", "s/x/run.sh": "f", "s/x/node_modules": "d", "s/x/node_modules/z": "f", "s/y": "f2", "n": "d"}, nil},
		{"a skill moved", tree{"s": "d", "s/skill.md": "f", "s/a": "d", "s/a/b": "f"}, tree{"t": "d", "t/skill.md": "f", "t/a": "d", "t/a/b": "f"},
			[]string{"held: delete s/a/b", "held: delete s/a", "held: delete s/skill.md", "held: delete s", "create t", "create t/a", "held: create t/a/b", "held: create t/skill.md"},
			tree{"s": "d", "s/skill.md": "f", "s/a": "d", "s/a/b": "f", "t": "d", "t/a": "d"}, nil},
		{"a skill at the top", tree{"SKILL.md": "f", "a": "f1"}, tree{"SKILL.md": "f", "a": "f2"}, []string{"modify a"}, nil, nil},
		{"dependencies", tree{}, tree{"node_modules": "d", "node_modules/x": "d", "node_modules/x/AGENTS.md": "f", "node_modules/python": "l/usr/bin/python3"}, []string{"create node_modules", "create node_modules/python", "create node_modules/x", "create node_modules/x/AGENTS.md"}, nil, nil},
		{"symlinks", tree{"d": "d"}, tree{"a": "ld/x", "d": "d", "d/b": "l../../x", "d/c": "l/etc/passwd", "e": "lnode_modules/x", "skills": "d", "skills/x": "l../d", "f": "ld/../../x", "g": "l.claude"},
			[]string{"create a", "create d/b: symlink that leads out of the directory", "create d/c: symlink that leads out of the directory", "held: create e", "create f: symlink that leads out of the directory", "create g", "create skills", "held: create skills/x"},
			tree{"a": "ld/x", "d": "d", "skills": "d", "g": "l.claude"}, tree{"a": "ld/x", "d": "d", "skills": "d", "g": "l.claude", "e": "lnode_modules/x", "skills/x": "l../d"}},
		{"the target of a steering symlink", tree{"CLAUDE.md": "ldocs/guide.md", "docs": "d", "docs/guide.md": "f1", "docs/x": "f"}, tree{"CLAUDE.md": "ldocs/guide.md", "docs": "d", "docs/guide.md": "f2", "docs/x": "f2"},
			[]string{"held: modify docs/guide.md", "modify docs/x"}, tree{"CLAUDE.md": "ldocs/guide.md", "docs": "d", "docs/guide.md": "f1", "docs/x": "f2"}, nil},
		{"a directory of hooks", tree{".git": "d", ".git/config": "f[core]\n\thooksPath = tools/hooks\n", "tools": "d"}, tree{".git": "d", ".git/config": "f[core]\n\thooksPath = tools/hooks\n", "tools": "d", "tools/hooks": "d", "tools/hooks/pre-commit": "f", "tools/x": "f"},
			[]string{"create tools/hooks", "held: create tools/hooks/pre-commit", "create tools/x"}, tree{".git": "d", ".git/config": "f[core]\n\thooksPath = tools/hooks\n", "tools": "d", "tools/hooks": "d", "tools/x": "f"}, nil},
		{"a bare repository", tree{}, tree{"r": "d", "r/HEAD": "f", "r/objects": "d", "r/config": "f[core]\n\tfsmonitor = x\n"}, []string{"create r", "create r/HEAD", "held: create r/config", "create r/objects"}, tree{"r": "d", "r/HEAD": "f", "r/objects": "d"}, nil},
		{"a clone", tree{}, tree{"r": "d", "r/.git": "d", "r/.git/config": "f[core]\n\tbare = false\n"}, []string{"create r", "create r/.git", "create r/.git/config"}, nil, nil},
		{"the configuration of an existing repository", tree{"r": "d", "r/.git": "d", "r/.git/config": "f"}, tree{"r": "d", "r/.git": "d", "r/.git/config": "f[core]\n\tbare = false\n"}, []string{"held: modify r/.git/config"}, tree{"r": "d", "r/.git": "d", "r/.git/config": "f"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lower, upper := dirs(t, tt.lower, tt.merged)
			s := read(t, lower, upper)
			if diff := cmp.Diff(tt.list, summary(s)); diff != "" {
				t.Errorf("list (-want +got):\n%s", diff)
			}
			if tt.ordinary == nil {
				tt.ordinary = tt.merged
			}
			if tt.both == nil {
				tt.both = tt.merged
			}
			for _, f := range s.Apply(context.Background(), ordinary) {
				t.Errorf("%s: %v", f.Change.Path, f.Err)
			}
			if diff := cmp.Diff(tt.ordinary, readTree(t, lower)); diff != "" {
				t.Errorf("ordinary changes (-want +got):\n%s", diff)
			}
			for _, f := range s.Apply(context.Background(), all) {
				t.Errorf("%s: %v", f.Change.Path, f.Err)
			}
			if diff := cmp.Diff(tt.both, readTree(t, lower)); diff != "" {
				t.Errorf("all changes (-want +got):\n%s", diff)
			}
		})
	}
}

// What a file with the name of a steering file leads to, in whatever way, is
// held.
func TestAliases(t *testing.T) {
	config := func(text string) tree { return tree{".git": "d", ".git/config": "f" + text} }
	for _, tt := range []struct {
		name  string
		lower tree
		new   tree // WORKSPACE stands for the directory
		held  []string
	}{
		{"a chain of links", tree{"CLAUDE.md": "ldocs/mid.md", "docs": "d", "docs/mid.md": "lfinal.md", "docs/final.md": "f"}, tree{"docs/final.md": "f2"}, []string{"modify docs/final.md"}},
		{"a link of a chain", tree{"CLAUDE.md": "ldocs/mid.md", "docs": "d", "docs/mid.md": "lfinal.md", "docs/final.md": "f"}, tree{"docs/mid.md": "lother.md"}, []string{"modify docs/mid.md"}},
		{"through a linked directory", tree{"b": "d", "b/CLAUDE.md": "l../doc/g.md", "doc": "ldocumentation", "documentation": "d", "documentation/g.md": "f"}, tree{"documentation/g.md": "f2"}, []string{"modify documentation/g.md"}},
		{"an absolute target", tree{"AGENTS.md": "lWORKSPACE/docs/a.md", "docs": "d", "docs/a.md": "f"}, tree{"docs/a.md": "f2"}, []string{"modify docs/a.md"}},
		{"out of the directory and back", tree{"AGENTS.md": "l../lower/a.md", "a.md": "f"}, tree{"a.md": "f2"}, []string{"modify a.md"}},
		{"a dependency", tree{".claude": "d", ".claude/skills": "d", ".claude/skills/p": "l../../node_modules/p", "node_modules": "d", "node_modules/p": "d", "node_modules/p/SKILL.md": "f"}, tree{"node_modules/p/SKILL.md": "f2", "node_modules/q": "f"}, []string{"modify node_modules/p/SKILL.md"}},
		{"a link in a linked directory", tree{".claude": "lcfg", "cfg": "d", "cfg/x": "l../lib/x", "lib": "d", "lib/x": "f"}, tree{"lib/x": "f2"}, []string{"modify lib/x"}},
		{"a dangling link, whose parent is made", tree{"f": "d", "f/CLAUDE.md": "l../nx/g.md"}, tree{"other": "d", "other/g.md": "f", "nx": "lother"}, []string{"create nx", "create other/g.md"}},
		{"a link of the same run", tree{"docs": "d", "docs/g.md": "f"}, tree{"CLAUDE.md": "ldocs/g.md", "docs/g.md": "f2"}, []string{"create CLAUDE.md", "modify docs/g.md"}},
		{"another case", tree{"CLAUDE.md": "ldocs/G.md", "docs": "d"}, tree{"docs/g.md": "f2"}, []string{"create docs/g.md"}},
		{"a linked hook", tree{".git": "d", ".git/hooks": "d", ".git/hooks/pre-commit": "l../../tools/check.sh", "tools": "d", "tools/check.sh": "f"}, tree{"tools/check.sh": "f2"}, []string{"modify tools/check.sh"}},
		{"absolute hooksPath", config("[core]\n\thooksPath = WORKSPACE/hk\n"), tree{"hk": "d", "hk/x": "f"}, []string{"create hk/x"}},
		{"hooksPath with a comment", config("[core] hooksPath = \"hk\" ; ours\n"), tree{"hk": "d", "hk/x": "f"}, []string{"create hk/x"}},
		{"hooksPath of the worktree", tree{".git": "d", ".git/config": "f", ".git/config.worktree": "f[core]\n\thooksPath = hk\n"}, tree{"hk": "d", "hk/x": "f"}, []string{"create hk/x"}},
		{"hooksPath by an included file", tree{".git": "d", ".git/config": "f[include]\n\tpath = ../cfg\n", "cfg": "f[core]\nhooksPath = hk\n"}, tree{"cfg": "f", "hk": "d", "hk/x": "f"}, []string{"modify cfg", "create hk/x"}},
		{"hooksPath of a nested repository", tree{"s": "d", "s/.git": "d", "s/.git/config": "f[core]\nhooksPath = hk\n"}, tree{"s/hk": "d", "s/hk/x": "f", "hk": "d", "hk/x": "f"}, []string{"create s/hk/x"}},
		{"a .git file", tree{"w": "d", "w/.git": "fgitdir: ../g\n", "g": "d", "g/config": "f[core]\nhooksPath = hk\n"}, tree{"w/hk": "d", "w/hk/x": "f"}, []string{"create w/hk/x"}},
		{"a worktree", tree{"w": "d", "w/.git": "fgitdir: WORKSPACE/.git/worktrees/w\n", ".git": "d", ".git/config": "f[core]\nhooksPath = hk\n", ".git/worktrees": "d", ".git/worktrees/w": "d", ".git/worktrees/w/commondir": "f../..\n"}, tree{"w/hk": "d", "w/hk/x": "f"}, []string{"create w/hk/x"}},
		{"hooksPath of the same run", tree{".git": "d", ".git/config": "f"}, tree{".git/config": "f[core]\nhooksPath = hk\n", "hk": "d", "hk/x": "f"}, []string{"modify .git/config", "create hk/x"}},
		{"a filter", config("[filter \"x\"]\n\tclean = python3 tools/clean.py %f\n"), tree{"tools": "d", "tools/clean.py": "f"}, []string{"create tools/clean.py"}},
		{"a link of a skill", tree{"s": "d", "s/SKILL.md": "f", "s/a.md": "l../docs/a.md", "docs": "d", "docs/a.md": "f", "docs/b.md": "f"}, tree{"docs/a.md": "f2", "docs/b.md": "f2"}, []string{"modify docs/a.md"}},
		{"a loop", tree{"CLAUDE.md": "la", "a": "lb", "b": "la"}, tree{"x": "f"}, nil},
	} {
		t.Run(tt.name, func(t *testing.T) {
			lower, _ := dirs(t, nil, nil)
			for p, text := range tt.lower {
				tt.lower[p] = strings.ReplaceAll(text, "WORKSPACE", lower)
			}
			merged := maps.Clone(tt.lower)
			maps.Copy(merged, tt.new)
			tt.lower.write(t, lower)
			upper := filepath.Join(lower, "..", "upper")
			writeUpper(t, upper, tt.lower, merged)
			s := read(t, lower, upper)
			var held []string
			for _, line := range summary(s) {
				if line, ok := strings.CutPrefix(line, "held: "); ok {
					held = append(held, line)
				}
			}
			if diff := cmp.Diff(tt.held, held); diff != "" {
				t.Errorf("held (-want +got):\n%s", diff)
			}
			root, err := os.OpenRoot(lower)
			if err != nil {
				t.Fatal(err)
			}
			defer root.Close()
			for p := range tt.new {
				held := slices.ContainsFunc(tt.held, func(s string) bool { return strings.HasSuffix(s, " "+p) })
				class, _ := overlay.Classify(root, p)
				if held && !strings.Contains(tt.name, "made") && !strings.Contains(tt.name, "same run") && class != steering.Steering {
					t.Errorf("%s is %v for other programs", p, class)
				}
				if !held && merged[p] != "d" && class == steering.Steering {
					t.Errorf("%s is %v for other programs", p, class)
				}
			}
		})
	}
}

// No two commands make a repository of which nobody saw the configuration.
func TestRepositoryInSteps(t *testing.T) {
	whole := tree{"x": "d", "x/HEAD": "f", "x/config": "f[core]\n\tfsmonitor = evil\n", "x/objects": "d", "x/refs": "d"}
	for first := range 1 << 4 {
		lower, upper := dirs(t, nil, nil)
		steps := [2]tree{{"x": "d"}, whole}
		for i, p := range []string{"x/HEAD", "x/config", "x/objects", "x/refs"} {
			if first&(1<<i) != 0 {
				steps[0][p] = whole[p]
			}
		}
		for i, merged := range steps {
			now := readTree(t, lower)
			maps.Copy(now, merged)
			if i > 0 {
				upper = filepath.Join(lower, "..", "upper2")
				if err := os.Mkdir(upper, 0o755); err != nil {
					t.Fatal(err)
				}
			}
			writeUpper(t, upper, readTree(t, lower), now)
			s := read(t, lower, upper)
			for _, f := range s.Apply(context.Background(), ordinary) {
				if !strings.Contains(f.Err.Error(), "no such file") {
					t.Errorf("%s: %v", f.Change.Path, f.Err)
				}
			}
		}
		if got := readTree(t, lower); got["x/config"] != "" && got["x/HEAD"] != "" && got["x/objects"] != "" && got["x/refs"] != "" {
			t.Errorf("after %v: %v", steps[0], got)
		}
	}
}

func TestApplyModes(t *testing.T) {
	lower, upper := dirs(t, tree{}, tree{"b": "f", "d": "d", "d/x": "f", "e": "f"})
	for p, mode := range map[string]fs.FileMode{"b": 0o751, "d/x": 0, "d": 0o500, "e": 0o4755 | fs.ModeSetuid} {
		if err := os.Chmod(filepath.Join(upper, p), mode); err != nil {
			t.Fatal(err)
		}
	}
	when := time.Unix(1_000_000_000, 0)
	if err := os.Chtimes(filepath.Join(upper, "b"), when, when); err != nil {
		t.Fatal(err)
	}
	s := read(t, lower, upper)
	t.Cleanup(func() { os.Chmod(filepath.Join(lower, "d"), 0o700) })
	for _, f := range s.Apply(context.Background(), all) {
		t.Errorf("%s: %v", f.Change.Path, f.Err)
	}
	for p, want := range map[string]fs.FileMode{"b": 0o751, "d": fs.ModeDir | 0o500, "e": 0o755} {
		fi, err := os.Lstat(filepath.Join(lower, p))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != want {
			t.Errorf("%s: %v, want %v", p, fi.Mode(), want)
		}
		if p == "b" && !fi.ModTime().Equal(when) {
			t.Errorf("b changed at %v, want %v", fi.ModTime(), when)
		}
	}
}

// When the user interrupts it, applying stops and says what is missing.
func TestApplyInterrupted(t *testing.T) {
	lower, upper := dirs(t, tree{}, tree{"a": "f", "b": "f", "c": "f"})
	s := read(t, lower, upper)
	ctx, cancel := context.WithCancel(t.Context())
	failed := s.Apply(ctx, func(c *overlay.Change) bool {
		if c.Path == "b" {
			cancel()
		}
		return true
	})
	if len(failed) != 2 || failed[0].Change.Path != "b" || failed[0].Err.Error() != "interrupted" {
		t.Errorf("failed: %v", failed)
	}
	if diff := cmp.Diff(tree{"a": "f"}, readTree(t, lower)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Directories keep the bit by which their files get their group.
func TestApplyKeepsSetgid(t *testing.T) {
	lower, upper := dirs(t, tree{"d": "d"}, tree{"d": "d", "d/e": "d", "d/e/x": "f"})
	if err := errors.Join(os.Chmod(filepath.Join(lower, "d"), 0o755|fs.ModeSetgid), os.Chmod(filepath.Join(upper, "d"), 0o750)); err != nil {
		t.Fatal(err)
	}
	for _, f := range read(t, lower, upper).Apply(context.Background(), all) {
		t.Errorf("%s: %v", f.Change.Path, f.Err)
	}
	for p, want := range map[string]fs.FileMode{"d": 0o750, "d/e": 0o755} {
		fi, err := os.Lstat(filepath.Join(lower, p))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode() != fs.ModeDir|fs.ModeSetgid|want {
			t.Errorf("%s: %v", p, fi.Mode())
		}
	}
}

// What another program changed during the command stays.
func TestApplyConflict(t *testing.T) {
	lower, upper := dirs(t, tree{"a": "f1", "b": "f1", "c": "f1"}, tree{"a": "f2", "c": "f2"})
	write := func(name string) {
		if err := os.WriteFile(filepath.Join(lower, name), []byte("theirs"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	past := time.Now().Add(-time.Hour)
	began := waitForTick(t, filepath.Join(lower, "c"))
	write("a")
	write("b")
	for _, p := range []string{"a", "b"} { // as cp -p does
		if err := os.Chtimes(filepath.Join(lower, p), past, past); err != nil {
			t.Fatal(err)
		}
	}
	s, err := overlay.Read(lower, upper, began)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff([]string{"modify a: changed meanwhile by another program", "delete b: changed meanwhile by another program", "modify c"}, summary(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	write("c") // after the list was made
	if failed := s.Apply(context.Background(), all); len(failed) != 1 || failed[0].Change.Path != "c" {
		t.Errorf("failed: %v", failed)
	}
	if diff := cmp.Diff(tree{"a": "ftheirs", "b": "ftheirs", "c": "ftheirs"}, readTree(t, lower)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A directory that another program put in the place of a file, or where a new file
// was to be, stays.
func TestApplyConflictWithDirectory(t *testing.T) {
	lower, upper := dirs(t, tree{"delete": "f1", "modify": "f1", "mode": "f1"}, tree{"modify": "f2", "mode": "f1", "create": "f2"})
	tree{"mode": "f1"}.write(t, upper)
	if err := os.Chmod(filepath.Join(upper, "mode"), 0o755); err != nil {
		t.Fatal(err)
	}
	s := read(t, lower, upper)
	if diff := cmp.Diff([]string{"create create", "delete delete", "mode mode", "modify modify"}, summary(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	want := tree{"create": "d", "delete": "d", "mode": "d", "modify": "d"}
	for p := range want {
		if err := errors.Join(os.RemoveAll(filepath.Join(lower, p)), os.Mkdir(filepath.Join(lower, p), 0o700)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range s.Apply(context.Background(), all) {
		wantErr := "changed meanwhile by another program"
		if f.Change.Op == overlay.Create {
			wantErr = fs.ErrExist.Error()
		}
		if f.Err.Error() != wantErr {
			t.Errorf("%s: %v, want %s", f.Change.Path, f.Err, wantErr)
		}
		fi, err := os.Lstat(filepath.Join(lower, f.Change.Path))
		if err != nil || fi.Mode() != fs.ModeDir|0o700 {
			t.Errorf("%s is now %v, %v", f.Change.Path, fi, err)
		}
		delete(want, f.Change.Path)
	}
	if len(want) > 0 {
		t.Errorf("applied to directories: %v", want)
	}
}

// waitForTick waits until the clock of the file system has passed the change
// time of a file, and returns that time.
func waitForTick(t testing.TB, file string) time.Time {
	t.Helper()
	changed := func(name string) time.Time {
		var st unix.Stat_t
		if err := unix.Lstat(name, &st); err != nil {
			t.Fatal(err)
		}
		return time.Unix(st.Ctim.Unix())
	}
	began, probe := changed(file), filepath.Join(filepath.Dir(file), "..", "probe")
	for {
		if err := os.WriteFile(probe, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		if changed(probe).After(began) {
			return began
		}
	}
}

// A file of the user with the size and the modification time of the old one is
// not overwritten, neither before nor after the list was made.
func TestApplyConflictOfEqualTimes(t *testing.T) {
	lower, upper := dirs(t, tree{"a": "f1", "b": "f1", "d": "d", "d/x": "f1", "e": "d", "e/x": "f1", "n": "d", "n/x": "f1"}, tree{"a": "f2", "b": "f2", "d": "d", "d/x": "f2", "n": "d", "n/x": "f1", "n/y": "f"})
	other, err := os.MkdirTemp(filepath.Dir(lower), "other")
	if err != nil {
		t.Fatal(err)
	}
	tree{"a": "f9", "b": "f9", "d": "d", "d/x": "f9", "e": "d", "e/x": "f9"}.write(t, other)
	past := time.Now().Add(-time.Hour)
	for _, top := range []string{lower, other} {
		for _, p := range []string{"a", "b"} {
			if err := os.Chtimes(filepath.Join(top, p), past, past); err != nil {
				t.Fatal(err)
			}
		}
	}
	began := waitForTick(t, filepath.Join(other, "b"))
	move := func(name string) {
		t.Helper()
		if err := errors.Join(os.RemoveAll(filepath.Join(lower, name)), os.Rename(filepath.Join(other, name), filepath.Join(lower, name))); err != nil {
			t.Fatal(err)
		}
	}
	move("a")
	move("d")
	move("e")
	s, err := overlay.Read(lower, upper, began)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if diff := cmp.Diff([]string{"modify a: changed meanwhile by another program", "modify b", "modify d/x: changed meanwhile by another program", "delete e: changed meanwhile by another program", "create n/y"}, summary(s)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	move("b")
	if failed := s.Apply(context.Background(), all); len(failed) != 1 || failed[0].Change.Path != "b" {
		t.Errorf("failed: %v", failed)
	}
	if diff := cmp.Diff(tree{"a": "f9", "b": "f9", "d": "d", "d/x": "f9", "e": "d", "e/x": "f9", "n": "d", "n/x": "f1", "n/y": "f"}, readTree(t, lower)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Removing one name of a file does not keep the others.
func TestApplyHardLinks(t *testing.T) {
	lower, upper := dirs(t, tree{"a": "f1"}, tree{"a": "f2"})
	for _, p := range []string{"b", "c"} {
		if err := errors.Join(os.Link(filepath.Join(lower, "a"), filepath.Join(lower, p)), unix.Mknod(filepath.Join(upper, p), unix.S_IFCHR, 0)); err != nil {
			t.Fatal(err)
		}
	}
	for _, f := range read(t, lower, upper).Apply(context.Background(), all) {
		t.Errorf("%s: %v", f.Change.Path, f.Err)
	}
	if diff := cmp.Diff(tree{"a": "f2"}, readTree(t, lower)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A symlink that appears in the directory while changes wait leads nowhere.
func TestApplyFollowsNoSymlink(t *testing.T) {
	lower, upper := dirs(t, tree{"d": "d", "e": "d"}, tree{"d": "d", "e": "d", "d/x": "f"})
	s := read(t, lower, upper)
	if err := errors.Join(os.Remove(filepath.Join(lower, "d")), os.Symlink("e", filepath.Join(lower, "d"))); err != nil {
		t.Fatal(err)
	}
	if failed := s.Apply(context.Background(), all); len(failed) != 1 {
		t.Errorf("failed: %v", failed)
	}
	if diff := cmp.Diff(tree{"d": "le", "e": "d"}, readTree(t, lower)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestReadSpecialFiles(t *testing.T) {
	lower, upper := dirs(t, tree{}, tree{})
	if err := unix.Mkfifo(filepath.Join(upper, "p"), 0o600); err != nil {
		t.Fatal(err)
	}
	deep := upper + strings.Repeat("/d", 150)
	if err := os.MkdirAll(deep, 0o755); err != nil {
		t.Fatal(err)
	}
	s := read(t, lower, upper)
	last := s.List[len(s.List)-2:]
	if last[0].Refused == "" || last[1].Refused == "" {
		t.Errorf("%+v", last)
	}
	if failed := s.Apply(context.Background(), all); len(failed) > 0 {
		t.Errorf("failed: %v", failed)
	}
}

var names = []string{"a", "b", "CLAUDE.md", ".claude", "node_modules", ".git", "hooks"}

// drawTree returns a random tree. Steering files are no symlinks, because these
// make their targets steering files too; see TestAliases.
func drawTree(t *rapid.T, label string) tree {
	out := tree{}
	var fill func(dir string, depth int)
	fill = func(dir string, depth int) {
		for _, name := range rapid.SliceOfNDistinct(rapid.SampledFrom(names), 0, 4, rapid.ID).Draw(t, label) {
			p := path.Join(dir, name)
			class, _ := steering.Classify(p)
			switch kind := rapid.SampledFrom([]string{"f", "f", "d", "d", "l"}).Draw(t, label+" kind"); {
			case kind == "d" && depth < 3:
				out[p] = "d"
				fill(p, depth+1)
			case kind == "l" && class != steering.Steering:
				out[p] = "l" + rapid.SampledFrom([]string{"a", "../a", "/etc/passwd"}).Draw(t, label+" target")
			default:
				out[p] = "f" + rapid.SampledFrom([]string{"", "1", "2"}).Draw(t, label+" content")
			}
		}
	}
	fill("", 0)
	return out
}

// withoutSteering returns the merged tree without the changes of steering files
// and without symlinks that lead out.
func withoutSteering(lower, merged tree) tree {
	out := tree{}
	stays := func(p string) bool { // whether the lower entry stays
		class, _ := steering.Classify(p)
		was, is := lower[p], merged[p]
		return was != "" && was != "d" && (class == steering.Steering || was == is || was[0] == 'l' && refused(p, is))
	}
	add := func(p, content string) {
		out[p] = content
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			out[d] = "d"
		}
	}
	for p, was := range lower {
		if stays(p) {
			add(p, was)
		}
	}
	for _, p := range slices.Sorted(maps.Keys(merged)) {
		is := merged[p]
		class, _ := steering.Classify(p)
		at := steering.Top
		blocked := false
		for name := range strings.SplitSeq(p, "/") {
			at = at.Child(name)
		}
		for d := path.Dir(p); d != "."; d = path.Dir(d) {
			blocked = blocked || out[d] != "d"
		}
		switch {
		case blocked || refused(p, is) || out[p] != "":
		case is == "d" && (at.DirClass() != steering.Steering || lower[p] == "d"):
			out[p] = "d"
		case is != "d" && class != steering.Steering:
			out[p] = is
		}
	}
	return out
}

func refused(p, content string) bool {
	class, _ := steering.Classify(p)
	if content == "" || content[0] != 'l' || class == steering.Dependency {
		return false
	}
	return content == "l/etc/passwd" || content == "l../a" && !strings.Contains(p, "/")
}

// After applying the ordinary changes, the directory equals the merged view
// without the changes of steering files. After all, it equals the merged view,
// unless symlinks were refused.
func propertyApply(t *rapid.T, tb testing.TB) {
	lower, merged := drawTree(t, "lower"), drawTree(t, "merged")
	dir, upper := dirs(tb, lower, merged)
	s := read(tb, dir, upper)
	failed := s.Apply(context.Background(), ordinary)
	for _, f := range failed {
		if !errors.Is(f.Err, fs.ErrExist) && !strings.Contains(f.Err.Error(), "not a directory") && !strings.Contains(f.Err.Error(), "no such file") {
			t.Errorf("%s %s: %v", f.Change.Op, f.Change.Path, f.Err)
		}
	}
	if diff := cmp.Diff(withoutSteering(lower, merged), readTree(tb, dir)); diff != "" {
		t.Fatalf("lower %v\nmerged %v\nordinary changes (-want +got):\n%s", lower, merged, diff)
	}
	for _, c := range s.List {
		if c.Refused != "" {
			return
		}
	}
	s.Apply(context.Background(), all)
	if diff := cmp.Diff(merged, readTree(tb, dir)); diff != "" {
		t.Fatalf("lower %v\nmerged %v\nall changes (-want +got):\n%s", lower, merged, diff)
	}
}

func TestApplyProperty(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) { propertyApply(r, t) })
}

func FuzzApply(f *testing.F) {
	f.Fuzz(func(t *testing.T, data []byte) {
		rapid.MakeFuzz(func(r *rapid.T) { propertyApply(r, t) })(t, data)
	})
}
