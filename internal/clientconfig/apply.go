package clientconfig

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// maxFile is the maximum size of a configuration file in bytes.
const maxFile = 8 << 20

// fileState holds the content and metadata of a file when it was read.
type fileState struct {
	exists bool
	data   []byte
	info   fs.FileInfo // nil if it does not exist
}

// Apply writes the change. If Action is [None], it does nothing.
//
// Apply replaces the file atomically and preserves its mode and, if permitted,
// its owner. It does not preserve hard links or extended attributes. A new file
// has mode 0600, and new directories have mode 0700. If the file has changed
// since it was read, Apply returns [ErrChanged] and writes nothing. Processes
// that apply changes to the same file take turns: Apply waits up to 10 seconds
// for its turn. If another program writes the file after Apply has compared it
// and before Apply replaces it, that program's change is lost. After any other
// error the file is unchanged, unless only the deletion of a backup failed.
// Apply succeeds only once.
func (c *Change) Apply() (err error) {
	if c.Action == None {
		return nil
	}
	l, err := lockTarget(c.Target)
	if err != nil {
		return c.fileError("lock", err)
	}
	defer func() {
		l.unlock()
		if c.Action == Delete && err == nil {
			c.removeDirs()
		}
	}()
	if err := errors.Join(c.checkUnchanged(), c.checkBackups()); err != nil {
		return err
	}
	if c.Action == Delete {
		if err := os.Remove(c.Target); err != nil {
			return c.fileError("delete", err)
		}
		return c.removeBackups()
	}
	made, err := c.backUp()
	if err != nil {
		return err
	}
	if err := c.replace(); err != nil {
		if made && l.held { // else another process may rely on it
			os.Remove(c.Backup)
		}
		return err
	}
	return c.removeBackups()
}

// removeDirs deletes the empty directories above a deleted file that Apply may
// have created: those within c.base that have mode 0700.
func (c *Change) removeDirs() {
	if c.base == "" || c.File != c.Target {
		return
	}
	for dir := filepath.Dir(c.Target); ; dir = filepath.Dir(dir) {
		if rel, err := filepath.Rel(c.base, dir); err != nil || rel == "." || !filepath.IsLocal(rel) {
			return
		}
		info, err := os.Lstat(dir)
		if err != nil || runtime.GOOS != "windows" && info.Mode().Perm() != 0o700 || os.Remove(dir) != nil {
			return
		}
	}
}

func (c *Change) fileError(verb string, err error) error {
	return &FileError{File: c.Target, Problem: "cannot " + verb + " the file: " + causeText(err), Fix: "check the permissions, or change the file by hand", Err: err}
}

// causeText returns the text of an error without the path.
func causeText(err error) string {
	var p *fs.PathError
	var l *os.LinkError
	switch {
	case errors.As(err, &p):
		return p.Err.Error()
	case errors.As(err, &l):
		return l.Err.Error()
	}
	return err.Error()
}

// checkUnchanged returns [ErrChanged] if the file differs from what was read.
func (c *Change) checkUnchanged() error {
	target, err := resolveSymlinks(c.File)
	if err != nil {
		return err
	}
	now, err := readFile(target)
	if err != nil {
		return err
	}
	if target != c.Target || now.exists != c.before.exists || !bytes.Equal(now.data, c.before.data) {
		return kindError{ErrChanged, c.File + " changed during the review; nothing was written, review the change again"}
	}
	return nil
}

// replace replaces the file's content with the new text.
func (c *Change) replace() (err error) {
	defer func() {
		if err != nil && !errors.Is(err, ErrChanged) {
			err = c.fileError("write", err)
		}
	}()
	f, err := os.CreateTemp(filepath.Dir(c.Target), ".loadout-*.tmp")
	if err != nil {
		return err
	}
	defer os.Remove(f.Name()) // fails after the rename
	if err := errors.Join(c.writeTemp(f), f.Close()); err != nil {
		return err
	}
	if err := c.checkUnchanged(); err != nil {
		return err
	}
	return os.Rename(f.Name(), c.Target)
}

// writeTemp writes the new text to f and sets the mode and owner of the old
// file.
func (c *Change) writeTemp(f *os.File) error {
	if _, err := f.Write(c.after); err != nil {
		return err
	}
	if c.before.exists {
		if err := keepOwner(f, c.before.info); err != nil {
			return err
		}
		if err := f.Chmod(c.before.info.Mode().Perm()); err != nil {
			return err
		}
	}
	return f.Sync()
}

// resolveSymlinks resolves all symlinks in path. The target need not exist.
func resolveSymlinks(path string) (string, error) {
	missing := ""
	for range 100 {
		real, err := filepath.EvalSymlinks(path)
		if err == nil {
			return filepath.Join(real, missing), nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", &FileError{File: path, Problem: "cannot resolve symlinks: " + causeText(err), Fix: "fix the symlink or the permissions of its directories", Err: err}
		}
		dir, base := filepath.Dir(path), filepath.Base(path)
		if link, err := os.Readlink(path); err == nil { // dangling symlink
			if dir, err = filepath.EvalSymlinks(dir); err != nil {
				return "", err
			}
			if path = link; !filepath.IsAbs(link) {
				path = filepath.Join(dir, link)
			}
			continue
		}
		if dir == path {
			return "", err
		}
		path, missing = dir, filepath.Join(base, missing)
	}
	return "", &FileError{File: path, Problem: "too many symlinks", Fix: "fix the symlink"}
}

// readFile reads a regular file up to a maximum size. If the file does not
// exist, it returns an empty state and no error.
func readFile(path string) (fileState, error) {
	info, err := os.Stat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return fileState{}, nil
	}
	if err != nil {
		return fileState{}, readError(path, err)
	}
	if !info.Mode().IsRegular() { // checked before opening, because opening a pipe would block
		return fileState{}, &FileError{File: path, Problem: "not a regular file", Fix: "move it away, or name another file"}
	}
	f, err := os.Open(path)
	if err != nil {
		return fileState{}, readError(path, err)
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, maxFile+1))
	if err != nil {
		return fileState{}, readError(path, err)
	}
	if len(data) > maxFile {
		return fileState{}, &FileError{File: path, Problem: fmt.Sprintf("file too large (limit %d MiB)", maxFile>>20), Fix: "add the entry by hand"}
	}
	return fileState{exists: true, data: data, info: info}, nil
}

func readError(path string, err error) error {
	return &FileError{File: path, Problem: "cannot read the file: " + causeText(err), Fix: "check its permissions, or name another file", Err: err}
}

// checkWritable returns an error if the file is read-only. Apply could replace
// such a file, but its owner does not want it to change.
func (f fileState) checkWritable(path string) error {
	if f.exists && f.info.Mode().Perm()&0o200 == 0 {
		return &FileError{File: path, Problem: "the file is read-only", Fix: "make it writable first, or change what generates it"}
	}
	return nil
}
