package catalog

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/skill"
)

// maxLinks is the maximum number of symlinks on a path, as on Linux.
const maxLinks = 40

// outsideError is returned for a path that is outside a boundary, or leads
// outside through a symlink.
type outsideError struct {
	path, target string // target is the symlink's target, or empty
	dir          string // the boundary
}

func (e *outsideError) Error() string {
	if e.target == "" {
		return fmt.Sprintf("%s is outside of %s", e.path, e.dir)
	}
	return fmt.Sprintf("%s is a symlink to %s, outside of %s", e.path, e.target, e.dir)
}

// boundary is an open directory that paths must not leave. Symlinks inside it
// are followed, even if their target is absolute. Files outside are not even
// inspected, because inspecting them could block or mount a file system.
type boundary struct {
	root *os.Root
	dir  string // path as given
	real string // path without symlinks
}

// openBoundary opens the directory dir, or returns nil if dir is empty. The
// caller must close the boundary.
func openBoundary(dir string) (*boundary, error) {
	if dir == "" {
		return nil, nil
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(real)
	if err != nil {
		return nil, err
	}
	return &boundary{root: root, dir: dir, real: real}, nil
}

func (b *boundary) close() {
	if b != nil {
		b.root.Close()
	}
}

// rel converts an absolute path to a path relative to the boundary. It returns
// false if the path is outside. It does not resolve symlinks.
func (b *boundary) rel(path string) (string, bool) {
	for _, dir := range [...]string{b.dir, b.real} {
		if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
			return rel, true
		}
	}
	return "", false
}

// resolve returns path relative to the boundary and without symlinks. It
// returns an [*outsideError] if that would be outside the boundary.
func (b *boundary) resolve(path string) (string, error) {
	rest, ok := b.rel(path)
	if !ok {
		return "", &outsideError{path: path, dir: b.dir}
	}
	todo := strings.Split(rest, string(filepath.Separator))
	at, first := ".", ""
	for links := 0; len(todo) > 0; {
		name := todo[0]
		todo = todo[1:]
		switch {
		case name == "" || name == ".":
			continue
		case name == ".." && at == ".":
			return "", &outsideError{path: path, target: first, dir: b.dir}
		case name == "..":
			at = filepath.Dir(at)
			continue
		}
		next := filepath.Join(at, name)
		fi, err := b.root.Lstat(next)
		if err != nil {
			return "", err
		}
		if fi.Mode()&fs.ModeSymlink == 0 {
			at = next
			continue
		}
		target, err := b.root.Readlink(next)
		if err != nil {
			return "", err
		}
		if links++; links > maxLinks {
			return "", &fs.PathError{Op: "open", Path: path, Err: errors.New("too many levels of symbolic links")}
		}
		if first == "" {
			first = target
		}
		if filepath.IsAbs(target) {
			if target, ok = b.rel(target); !ok {
				return "", &outsideError{path: path, target: first, dir: b.dir}
			}
			at = "."
		}
		todo = append(strings.Split(filepath.FromSlash(target), string(filepath.Separator)), todo...)
	}
	return at, nil
}

// stat returns information about the file at path, which may be a symlink.
func (b *boundary) stat(path string) (fs.FileInfo, error) {
	rel, err := b.resolve(path)
	if err != nil {
		return nil, err
	}
	return b.root.Lstat(rel)
}

// openRoot opens the directory at path. If b is nil, path is not restricted.
// The caller must close the root.
func (b *boundary) openRoot(path string) (*os.Root, error) {
	if b == nil {
		return os.OpenRoot(path)
	}
	rel, err := b.resolve(path)
	if err != nil {
		return nil, err
	}
	return b.root.OpenRoot(rel)
}

// outsideProblem returns the diagnostic for a path outside the boundary.
func outsideProblem(err *outsideError) skill.Diagnostic {
	d := skill.Diagnostic{Severity: skill.Warning, Code: "outside-project", Message: "not searched: outside of the project " + err.dir,
		Fix: "copy it into the project, or add it to skills.dirs in your own configuration"}
	if err.target != "" {
		d.Message = fmt.Sprintf("not searched: a symlink to %s, outside of the project %s", err.target, err.dir)
	}
	return d
}
