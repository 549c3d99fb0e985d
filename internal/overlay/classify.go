package overlay

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/steering"
)

// Classify classifies a file that a program other than a sandboxed command is
// about to write. It returns the class and, for a steering file, the program
// that reads it. Unlike [steering.Classify], it also considers the directory's
// path, symlinks and repositories. The file need not exist. Classify is as
// strict as [Read].
func Classify(dir *os.Root, name string) (steering.Class, string) {
	top := newTop(dir.Name())
	at := top.at
	parent := "."
	for part := range strings.SplitSeq(path.Clean(name), "/") {
		old, err := listDir(dir, parent)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return steering.Steering, "unknown programs, because its directory cannot be read"
		}
		at = top.position(at, parent, old, append(slices.Clone(old), part)).Child(part)
		parent = path.Join(parent, part)
	}
	if at.Class() == steering.Steering {
		return at.Class(), at.Reader()
	}
	if reader := findAliases(dir, nil, top).reader(path.Clean(name)); reader != "" {
		return steering.Steering, reader
	}
	return at.Class(), ""
}

func listDir(dir *os.Root, name string) ([]string, error) {
	f, err := dir.OpenFile(name, os.O_RDONLY|noFollow, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return f.Readdirnames(-1)
}

// repositoryPosition returns the position of a directory with the entries in
// names: that of a Git directory if the entries show that it is one, and
// otherwise pos. old lists the entries before the change. If the change creates
// a Git directory in which Git would obey an old entry, every change in the
// directory needs the user's agreement, because nobody reviewed that entry as
// part of a repository.
func repositoryPosition(pos steering.Position, old, names []string) steering.Position {
	repository := pos.GitDir()
	obeys := func(name string) bool { return repository.Child(name).Class() == steering.Steering }
	switch {
	case !isGitDir(names):
		return pos
	case pos.InPlainDir() && !isGitDir(old) && slices.ContainsFunc(old, obeys):
		return pos.Hold("Git, because the directory becomes a repository with the files in it")
	}
	return repository
}

// isGitDir reports whether Git would treat a directory with these entries, or
// with a few more, as a repository.
func isGitDir(names []string) bool {
	has := map[string]bool{}
	for _, n := range names {
		has[strings.ToLower(n)] = true
	}
	return has["head"] && (has["objects"] || has["commondir"]) || has["objects"] && has["refs"]
}

// holdAliases holds each change to a file that a symlink or a Git configuration
// refers to, either before or after the changes.
func (r *comparer) holdAliases() {
	if len(r.set.List) == 0 {
		return
	}
	a := findAliases(r.set.lower, r.set.upper, r.top)
	followed := map[int]bool{}
	for more := true; more; { // a held symlink leads to others
		more = false
		for i := range r.set.List {
			c := &r.set.List[i]
			if c.Ordinary() && !c.Mode.IsDir() {
				if reader := a.reader(c.Path); reader != "" {
					r.hold(c, reader)
				}
			}
			if c.Held() && !followed[i] && c.Op != Delete {
				followed[i], more = true, true
				r.addReferences(a, c)
			}
		}
		a.scan()
	}
	r.holdParents()
}

// hold marks a change as needing the user's agreement.
func (r *comparer) hold(c *Change, reader string) {
	c.Class, c.Reader = steering.Steering, reader
	if c.Mode.Type() != fs.ModeSymlink || c.Op == Delete {
		return
	}
	at := cursor{top: r.set.upper}
	defer at.truncate(0)
	dir, err := at.dir(path.Dir(c.Path))
	if err == nil {
		var target string
		if target, err = dir.Readlink(path.Base(c.Path)); err == nil {
			if _, ok := resolve(path.Dir(c.Path), target); ok {
				return
			}
		}
	}
	c.Refused = leadsOut // in a directory of dependencies
}

// addReferences adds the files that a held change refers to.
func (r *comparer) addReferences(a *aliases, c *Change) {
	switch {
	case c.Mode.Type() == fs.ModeSymlink:
		a.addSymlink(c.Path, c.Reader)
	case c.Mode.IsRegular() && r.top.positionOf(c.Path).InGit() && strings.HasPrefix(strings.ToLower(path.Base(c.Path)), "config"):
		if _, data, err := r.set.Contents(c, steering.MaxGitConfig); err == nil {
			file := a.host(c.Path)
			a.addSettings(a.host(path.Dir(path.Dir(c.Path))), file, data)
		}
	}
}

// holdParents holds the deletions of directories that contain held changes.
func (r *comparer) holdParents() {
	parents := map[string]string{}
	for i := range r.set.List {
		if c := &r.set.List[i]; c.Op == Delete && c.Held() {
			for p := path.Dir(c.Path); p != "." && parents[p] == ""; p = path.Dir(p) {
				parents[p] = c.Reader
			}
		}
	}
	for i := range r.set.List {
		c := &r.set.List[i]
		if reader := parents[c.Path]; c.Op == Delete && c.Mode.IsDir() && c.Ordinary() && reader != "" {
			c.Class, c.Reader = steering.Steering, reader
		}
	}
}
