package execution

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/sandbox"
)

// ErrWorkspace is returned for a directory that scripts must not access.
var ErrWorkspace = errors.New("scripts must not access this directory")

// CheckWorkspace returns an error if scripts must not be given access to dir.
// The error wraps [ErrWorkspace] if dir is a relative path, is the root of the
// file system, or overlaps a protected directory. Protected directories hold
// Loadout's own state.
func CheckWorkspace(dir string, protected ...string) error {
	if !filepath.IsAbs(dir) {
		return fmt.Errorf("workspace %s: %w: path is not absolute", dir, ErrWorkspace)
	}
	real, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return fmt.Errorf("resolve workspace: %w", err)
	}
	if filepath.Dir(real) == real {
		return fmt.Errorf("workspace %s: %w: file system root", dir, ErrWorkspace)
	}
	for _, p := range protected {
		if p == "" {
			continue
		}
		if isInside(real, resolveExisting(p)) || isInside(resolveExisting(p), real) {
			return fmt.Errorf("workspace %s: %w: Loadout keeps its state in %s; choose another directory", dir, ErrWorkspace, p)
		}
	}
	return nil
}

// isInside reports whether path is dir or below it.
func isInside(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, ".."+string(filepath.Separator))
}

// resolveExisting resolves the symlinks in the existing part of path.
func resolveExisting(path string) string {
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

// protectedNames lists names of files and directories that make other programs
// run code. They are read-only in a workspace that code may change directly.
var protectedNames = []string{".git", ".hg", ".vscode", ".idea", ".claude", ".cursor", ".codex", ".gemini", ".mcp.json", ".envrc", ".husky", ".loadout", "loadout.yaml"}

// IsProtected reports whether a path in a workspace contains a protected name,
// such as .git. Files with these names make other programs run code, so scripts
// must not write to them.
func IsProtected(name string) bool {
	for part := range strings.SplitSeq(filepath.ToSlash(name), "/") {
		if slices.Contains(protectedNames, strings.ToLower(part)) {
			return true
		}
	}
	return false
}

// Access is the kind of access that code has to the user's directory.
type Access int

// Kinds of access.
const (
	// ReadOnly lets code read the directory.
	ReadOnly Access = iota
	// Overlay lets code change its own view of the directory. At the end, the
	// changes are applied to the directory, except changes to steering files
	// that the user did not agree to. If the sandbox has no overlays, access is
	// ReadOnly.
	Overlay
	// OverlayOrDirect is like Overlay, but Direct if the sandbox has no
	// overlays.
	OverlayOrDirect
	// Direct lets code change the directory, except existing files and
	// directories with protected names.
	Direct
)

// mountWorkspace mounts the user's directory in the sandbox.
func mountWorkspace(s *sandbox.Spec, dir string, access Access) {
	m := sandbox.Mount{Host: dir, Path: mountpoint.Workspace}
	switch access {
	case Overlay, OverlayOrDirect:
		m.Overlay = true
	case Direct:
		m.Writable = true
	}
	s.Mounts = append(s.Mounts, m)
	if access != Direct {
		return
	}
	for _, name := range protectedNames {
		p := filepath.Join(dir, name)
		if fi, err := os.Lstat(p); err == nil && (fi.IsDir() || fi.Mode().IsRegular()) {
			s.Mounts = append(s.Mounts, sandbox.Mount{Host: p, Path: mountpoint.Workspace + "/" + name})
		}
	}
}
