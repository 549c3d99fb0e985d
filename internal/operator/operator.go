// Package operator reads the configuration file of this machine's
// administrator.
//
// The file is used only if nobody else could have written it: it and the
// directories above it must belong to the administrator, nobody else may write
// to them, and none of them may be a symlink. The path does not depend on the
// environment, which an agent controls.
//
// Start with [File.Read]. [SafePath] applies the same check to the directories
// of a search path.
package operator

import (
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// maxBytes is the maximum size of the configuration file.
const maxBytes = 1 << 20

// File is the administrator's configuration file. The zero value represents the
// file in the system's configuration directory.
type File struct {
	// Root replaces the system's configuration directory. The directories above
	// it are not checked. Only tests set it.
	Root string
}

// UnsafeError is returned if someone other than the administrator may have
// written the file. The content of the file was not read.
type UnsafeError struct {
	Path   string // the file, or a directory above it
	Reason string
}

// Error returns a message with the path, the reason and advice for the
// administrator.
func (e *UnsafeError) Error() string {
	return fmt.Sprintf("%s cannot be trusted: %s; the administrator can repair it: %s", e.Path, e.Reason, repair(e.Path))
}

// Path returns the path of the configuration file, or "" if the system has no
// configuration directory.
func (f File) Path() string {
	dir := f.Root
	if dir == "" {
		dir = systemDir()
	}
	if dir == "" {
		return ""
	}
	return filepath.Join(dir, "loadout", "loadout.yaml")
}

// Read returns the content of the configuration file. The error matches
// [fs.ErrNotExist] if there is none. It is an [*UnsafeError] if someone other
// than the administrator may have written the file.
func (f File) Read() ([]byte, error) {
	path := f.Path()
	if path == "" {
		return nil, fmt.Errorf("find administrator's configuration: %w", fs.ErrNotExist)
	}
	top := f.Root
	if top == "" {
		top = checkedFrom()
	}
	if err := checkDirs(top, filepath.Dir(path)); err != nil {
		return nil, err
	}
	// Only the administrator can replace what was checked, so opening the file
	// after the check is safe.
	info, err := os.Lstat(path)
	if err != nil {
		return nil, err
	}
	if err := check(path, info, 0); err != nil {
		return nil, err
	}
	return read(path)
}

// checkDirs checks dir and the directories above it, up to top.
func checkDirs(top, dir string) error {
	if dir != top && dir != filepath.Dir(dir) {
		if err := checkDirs(top, filepath.Dir(dir)); err != nil {
			return err
		}
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	return check(dir, info, fs.ModeDir)
}

// check returns an [*UnsafeError] unless path is a file or directory that only
// the administrator can write.
func check(path string, info fs.FileInfo, want fs.FileMode) error {
	reason := ""
	switch t := info.Mode().Type(); {
	case t == fs.ModeSymlink:
		reason = "symbolic link"
	case t != want && want == fs.ModeDir:
		reason = "not a directory"
	case t != want:
		reason = "not a regular file"
	default:
		reason = unsafeReason(path, info)
	}
	if reason == "" {
		return nil
	}
	return &UnsafeError{Path: path, Reason: reason}
}

func read(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxBytes+1))
	if err != nil {
		return nil, err
	}
	if len(data) > maxBytes {
		return nil, fmt.Errorf("%s: too large (limit %d bytes)", path, maxBytes)
	}
	return data, nil
}
