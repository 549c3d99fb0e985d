package loadout

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/sandbox"
)

// ErrWorkspace says that a directory cannot be given to scripts.
var ErrWorkspace = errors.New("it cannot be given to scripts")

// CheckWorkspace reports whether scripts may be given a directory. The error
// matches [ErrWorkspace]: the whole file system, and whatever holds what this
// program decides by, stay out of their reach.
func (r *Runtime) CheckWorkspace(dir string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("workspace %s: %w: its path is not absolute", dir, ErrWorkspace)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("workspace: %w", err)
	}
	if filepath.Dir(real) == real {
		return fmt.Errorf("workspace %s: %w: it is the whole file system", dir, ErrWorkspace)
	}
	if !r.RunsScripts() {
		return ErrNoScripts
	}
	for _, p := range append([]string{r.scripts.Folders}, r.scripts.Protected...) {
		if p == "" {
			continue
		}
		if inside(real, existing(p)) || inside(existing(p), real) {
			return fmt.Errorf("workspace %s: %w: Loadout keeps what it decides by in %s; name a directory beside it", dir, ErrWorkspace, p)
		}
	}
	return nil
}

// inside reports whether path is dir or below it.
func inside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// existing is path with the links resolved of as much of it as is there.
func existing(path string) string {
	path = filepath.Clean(path)
	for p, rest := path, ""; ; {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			return filepath.Join(real, rest)
		}
		up := filepath.Dir(p)
		if up == p {
			return path
		}
		p, rest = up, filepath.Join(filepath.Base(p), rest)
	}
}

// guarded are what in a directory makes other programs run something when they
// are used there: in a workspace that may be written, they may not.
var guarded = []string{".git", ".hg", ".vscode", ".idea", ".claude", ".cursor", ".codex", ".gemini", ".mcp.json", ".envrc", ".husky", ".loadout", "loadout.yaml"}

// Guarded reports whether a path in a workspace is, or is in, one by which other
// programs run something when they are used there: nothing may be written to it.
func Guarded(name string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		if slices.Contains(guarded, strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// mountWorkspace gives the sandbox the directory of the person.
func mountWorkspace(s *sandbox.Spec, dir string, writable bool) {
	s.Mounts = append(s.Mounts, sandbox.Mount{Host: dir, Path: sandbox.WorkspaceDir, Writable: writable})
	if !writable {
		return
	}
	for _, name := range guarded {
		p := filepath.Join(dir, name)
		if fi, err := os.Lstat(p); err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
			s.Mounts = append(s.Mounts, sandbox.Mount{Host: p, Path: sandbox.WorkspaceDir + "/" + name})
		}
	}
}
