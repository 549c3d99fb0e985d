package overlay

import (
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/steering"
)

// top describes, based on the path of the user's directory, which programs read
// the files in it.
type top struct {
	at steering.Position
	// inSkills is set if the directory is inside a directory that agents search
	// for skills, so that it can be a skill itself.
	inSkills bool
}

// newTop returns the top for the path of a directory, both as given and with
// symlinks resolved. For example, the directory may be in a skill or below
// .claude, whose files agents read.
func newTop(dir string) top {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return top{at: steering.Top.Hold("unknown programs, because the path of the directory is not known")}
	}
	t := topAt(dir)
	if real, err := filepath.EvalSymlinks(dir); err == nil && real != dir && t.at == steering.Top {
		other := topAt(real)
		t = top{other.at, t.inSkills || other.inSkills}
	}
	return t
}

// DirReader returns the program that loads its configuration or instructions from
// directories with this path. It returns "" if no such program is known.
func DirReader(dir string) string { return newTop(dir).at.Reader() }

// topAt is like newTop for an absolute path, but does not resolve symlinks.
func topAt(dir string) top {
	at := steering.Top
	var names []string // from the directory that steers programs
	path := filepath.VolumeName(dir) + string(filepath.Separator)
	parts := strings.FieldsFunc(filepath.ToSlash(strings.TrimPrefix(dir, path)), func(r rune) bool { return r == '/' })
	for i, name := range parts {
		path = filepath.Join(path, name)
		at = at.Enter(name)
		if at != steering.Top {
			names = append(names, name)
		}
		if isLinkedWorktree(path) && (at.InGit() || slices.Contains(names[:min(len(names), 2)], "worktrees")) {
			at, names = steering.Top, nil
		}
		if i == len(parts)-1 {
			break // the entries of the directory itself count as they are on the overlay
		}
		switch {
		case hasAll(path, "HEAD", "objects", "refs"):
			at = at.GitDir()
		case hasAll(path, "SKILL.md") || hasAll(path, "skill.md"):
			at = at.SkillDir()
		}
	}
	return top{at, len(parts) > 1 && strings.EqualFold(parts[len(parts)-2], "skills")}
}

// isLinkedWorktree reports whether a directory was created by git worktree add.
// Agents keep worktrees of a project below .claude/worktrees,
// ~/.codex/worktrees and so on (code.claude.com/docs/en/worktrees), and users
// keep them in a bare repository.
func isLinkedWorktree(dir string) bool {
	data, err := readConfig(filepath.Join(dir, ".git"))
	to, ok := strings.CutPrefix(strings.TrimRight(string(data), "\r\n"), "gitdir: ")
	return err == nil && ok && filepath.Base(filepath.Dir(filepath.FromSlash(to))) == "worktrees"
}

func hasAll(dir string, names ...string) bool {
	return !slices.ContainsFunc(names, func(name string) bool {
		_, err := os.Lstat(filepath.Join(dir, name))
		return err != nil
	})
}

// position returns the steering position of the directory p. It differs from
// pos if the entries of p show that p is a repository or a skill. names lists
// the entries, and old those that existed before the change. The top directory,
// which the user chose, counts as a skill only if agents search its parent for
// skills.
func (t top) position(pos steering.Position, p string, old, names []string) steering.Position {
	if pos = repositoryPosition(pos, old, names); (dotIfEmpty(p) != "." || t.inSkills) && slices.ContainsFunc(names, steering.IsSkillFile) {
		return pos.SkillDir()
	}
	return pos
}

// positionOf returns the position of a path in the directory, based only on the
// names in the path.
func (t top) positionOf(name string) steering.Position {
	at := t.at
	for n := range strings.SplitSeq(name, "/") {
		at = at.Child(n)
	}
	return at
}
