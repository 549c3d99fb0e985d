package overlay

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/fileerror"
)

// MaxStored is the maximum size of a file in a [Stored] change.
const MaxStored = 64 << 10

// ErrStale is returned for a stored change if its file was modified after the
// change was stored.
var ErrStale = errors.New("file has changed since the change was stored")

// Stored is a change that can be applied after the sandbox was removed. It
// contains the new content of the file.
type Stored struct {
	Path    string      `json:"path"` // relative, with slashes; from untrusted code
	Op      Op          `json:"op"`
	Mode    fs.FileMode `json:"mode"`              // as in [Change]
	Reader  string      `json:"reader"`            // as in [Change]
	Before  string      `json:"before,omitempty"`  // state of the file before the change; "" if it did not exist
	Content []byte      `json:"content,omitempty"` // content of a file
	Target  string      `json:"target,omitempty"`  // target of a symlink
}

// Store returns a change in a form that outlives the set. The error says why
// the change cannot be stored, for example that a file has more than
// [MaxStored] bytes.
func (s *Set) Store(c *Change) (Stored, error) {
	out := Stored{Path: c.Path, Op: c.Op, Mode: c.Mode, Reader: c.Reader}
	if err := out.Check(); err != nil {
		return out, err
	}
	lower, upper := cursor{top: s.lower}, cursor{top: s.upper}
	defer lower.truncate(0)
	defer upper.truncate(0)
	var err error
	if c.was != nil {
		if out.Before, _, err = stateOf(&lower, c.Path); err != nil {
			return out, err
		}
	}
	if c.Op == Delete || c.Op == Mode || c.Mode.IsDir() {
		return out, nil
	}
	dir, err := upper.dir(path.Dir(c.Path))
	if err != nil {
		return out, err
	}
	if c.Mode.Type() == fs.ModeSymlink {
		out.Target, err = dir.Readlink(path.Base(c.Path))
	} else {
		out.Content, err = content(dir, path.Base(c.Path), MaxStored)
	}
	if err != nil {
		err = fmt.Errorf("%s: %w", c.Path, fileerror.Cause(err))
	}
	return out, err
}

// Check returns an error if the change is not valid.
func (c *Stored) Check() error {
	switch {
	case !fs.ValidPath(c.Path) || c.Path == "." || !utf8.ValidString(c.Path):
		return fmt.Errorf("invalid path %q of a changed file", c.Path)
	case c.Op != Create && c.Op != Modify && c.Op != Mode && c.Op != Delete:
		return fmt.Errorf("invalid operation %q on %q", c.Op, c.Path)
	case len(c.Content) > MaxStored:
		return fmt.Errorf("%q too large (%d bytes, limit %d)", c.Path, len(c.Content), MaxStored)
	}
	switch c.Mode.Type() {
	case 0, fs.ModeDir, fs.ModeSymlink:
		return nil
	}
	return fmt.Errorf("%q: %s", c.Path, special)
}

// stateOf returns the state and the content of a file. The state is "" if the
// file does not exist; otherwise it consists of the file's type, permissions
// and hash.
func stateOf(at *cursor, name string) (state string, data []byte, err error) {
	dir, err := at.dir(path.Dir(name))
	if err == nil {
		var fi fs.FileInfo
		if fi, err = dir.Lstat(path.Base(name)); err == nil {
			if fi.IsDir() {
				return "directory", nil, nil
			}
			if data, err = content(dir, path.Base(name), MaxStored); err == nil {
				sum := sha256.Sum256(data)
				return fi.Mode().String() + " " + hex.EncodeToString(sum[:]), data, nil
			}
		}
	}
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil, nil
	}
	return "", nil, fmt.Errorf("%s: %w", name, fileerror.Cause(err))
}

// Contents returns the content of the file in a directory before and after the
// change, as [Set.Contents] does. The error matches [ErrStale] if the file was
// modified after the change was stored.
func (c *Stored) Contents(lower string) (before, after []byte, err error) {
	root, err := os.OpenRoot(lower)
	if err != nil {
		return nil, nil, err
	}
	defer root.Close()
	at := cursor{top: root}
	defer at.truncate(0)
	before, err = c.current(&at)
	switch {
	case err != nil || c.Op == Delete:
		return before, nil, err
	case c.Op == Mode || c.Mode.IsDir():
		return before, before, nil
	case c.Mode.Type() == fs.ModeSymlink:
		return before, []byte("symlink to " + c.Target + "\n"), nil
	}
	return before, c.Content, nil
}

// current returns the content of the file, or an error that matches [ErrStale].
func (c *Stored) current(at *cursor) ([]byte, error) {
	state, data, err := stateOf(at, c.Path)
	madeAlready := c.Op == Create && c.Mode.IsDir() && state == "directory"
	if err == nil && state != c.Before && !madeAlready {
		err = fmt.Errorf("%s: %w", c.Path, ErrStale)
	}
	return data, err
}

// Apply applies the change to a directory. It does not follow symlinks. Files
// are replaced atomically. The error matches [ErrStale] if the file was
// modified after the change was stored.
func (c *Stored) Apply(lower string) error {
	if err := c.Check(); err != nil {
		return err
	}
	root, err := os.OpenRoot(lower)
	if err != nil {
		return err
	}
	defer root.Close()
	at := cursor{top: root}
	defer at.truncate(0)
	if _, err := c.current(&at); err != nil {
		return err
	}
	dir, err := at.dir(path.Dir(c.Path))
	if err == nil {
		err = c.applyIn(dir, path.Base(c.Path))
	}
	if err != nil {
		return fmt.Errorf("%s: %w", c.Path, fileerror.Cause(err))
	}
	return nil
}

func (c *Stored) applyIn(dir *os.Root, name string) error {
	switch {
	case c.Op == Delete:
		return dir.Remove(name)
	case c.Op == Mode:
		return dir.Chmod(name, c.Mode.Perm())
	case c.Mode.IsDir():
		if err := dir.Mkdir(name, c.Mode.Perm()|0o700); err != nil && !errors.Is(err, fs.ErrExist) {
			return err
		}
		return chownLikeParent(dir, name)
	}
	temp := tempName()
	var err error
	if c.Mode.Type() == fs.ModeSymlink {
		err = dir.Symlink(c.Target, temp)
	} else {
		err = writeNew(dir, temp, c.Content, c.Mode.Perm())
	}
	if err == nil {
		err = chownLikeParent(dir, temp)
	}
	if err != nil {
		dir.Remove(temp) // it may not exist
		return err
	}
	return replace(dir, temp, name)
}

func writeNew(dir *os.Root, name string, data []byte, mode fs.FileMode) error {
	f, err := dir.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = bytes.NewReader(data).WriteTo(f)
	return errors.Join(err, f.Chmod(mode), f.Close())
}

// chownLikeParent gives a new file the owner of its directory, because root may
// apply changes to the directory of another user.
func chownLikeParent(dir *os.Root, name string) error {
	if os.Geteuid() != 0 {
		return nil
	}
	fi, err := dir.Stat(".")
	if err != nil {
		return err
	}
	if uid, gid, ok := owner(fi); ok {
		return dir.Lchown(name, uid, gid)
	}
	return nil
}
