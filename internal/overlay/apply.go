package overlay

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"github.com/loadout-dev/loadout/internal/fileerror"
)

// Failure is a change that could not be applied.
type Failure struct {
	Change *Change
	Err    error // the error, without the path
}

// errChanged is the error for a change to a file that another program modified
// after [Read].
var errChanged = errors.New(changedNow)

// errInterrupted is the error for a change that was not applied because the
// context was done.
var errInterrupted = errors.New("interrupted")

// Apply applies the changes for which want returns true, in order, and returns
// those that failed. It skips changes that were already applied or are refused.
// After a failure, it continues with the next change. Files are replaced
// atomically. When the context is done, the remaining changes fail.
func (s *Set) Apply(ctx context.Context, want func(*Change) bool) []Failure {
	if s.unlinked == nil {
		s.unlinked = map[inode]bool{}
	}
	a := &applier{lower: cursor{top: s.lower}, upper: cursor{top: s.upper}, unlinked: s.unlinked}
	defer a.lower.truncate(0)
	defer a.upper.truncate(0)
	var failed []Failure
	for i := range s.List {
		c := &s.List[i]
		if c.applied || c.Refused != "" || !want(c) {
			continue
		}
		if ctx.Err() != nil {
			failed = append(failed, Failure{c, errInterrupted})
			continue
		}
		if err := a.apply(c); err != nil {
			failed = append(failed, Failure{c, fileerror.Cause(err)})
			continue
		}
		c.applied = true
	}
	return failed
}

// Contents returns the content of a changed file before and after the change.
// The content is nil if the file does not exist, and a line with the target if
// it is a symlink. If a file has more than limit bytes or cannot be read, the
// error names it.
func (s *Set) Contents(c *Change, limit int64) (before, after []byte, err error) {
	lower, upper := cursor{top: s.lower}, cursor{top: s.upper}
	defer lower.truncate(0)
	defer upper.truncate(0)
	name := path.Base(c.Path)
	if c.was != nil {
		dir, err := lower.dir(path.Dir(c.Path))
		if err == nil {
			before, err = content(dir, name, limit)
		}
		if err != nil {
			return nil, nil, fmt.Errorf("read original file %s: %w", c.Path, fileerror.Cause(err))
		}
	}
	if c.Op == Delete {
		return before, nil, nil
	}
	dir, err := upper.dir(path.Dir(c.Path))
	if err == nil {
		after, err = content(dir, name, limit)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read changed file %s: %w", c.Path, fileerror.Cause(err))
	}
	return before, after, nil
}

// content returns the content of a file, or a line with the target of a
// symlink.
func content(dir *os.Root, name string, limit int64) ([]byte, error) {
	fi, err := dir.Lstat(name)
	if err != nil {
		return nil, err
	}
	if fi.Mode().Type() == fs.ModeSymlink {
		target, err := dir.Readlink(name)
		return []byte("symlink to " + target + "\n"), err
	}
	f, err := openFile(dir, name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("too large to show (%d bytes, limit %d)", fi.Size(), limit)
	}
	return data, err
}

// applier applies changes. It opens the directory of a change without following
// symlinks and changes only entries of that directory.
type applier struct {
	lower, upper cursor
	unlinked     map[inode]bool // see [Set]
}

func (a *applier) apply(c *Change) error {
	dir, err := a.lower.dir(path.Dir(c.Path))
	if err != nil {
		return err
	}
	name := path.Base(c.Path)
	if err := a.checkUnchanged(dir, name, c); err != nil {
		return err
	}
	if c.was != nil && c.Op != Mode {
		a.unlinked[inodeOf(c.was)] = true // changes the time of its other names
	}
	if c.Op == Delete {
		return dir.Remove(name)
	}
	if c.Op == Mode {
		return chmod(dir, name, c.Mode.Perm())
	}
	from, err := a.upper.dir(path.Dir(c.Path))
	if err != nil {
		return err
	}
	switch c.Mode.Type() {
	case fs.ModeDir:
		return makeDir(from, dir, name, c)
	case fs.ModeSymlink:
		return copySymlink(from, dir, name)
	}
	return copyFile(from, dir, name, c.Mode.Perm())
}

// checkUnchanged returns an error if the entry has changed since the changes
// were read.
func (a *applier) checkUnchanged(dir *os.Root, name string, c *Change) error {
	now, err := dir.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && (c.was == nil || c.Op == Mode && c.Mode.IsDir()):
		return nil // a new directory is made before its permissions are set
	case errors.Is(err, fs.ErrNotExist):
		return errChanged
	case err != nil:
		return err
	case c.Op == Create && c.Mode.IsDir() && now.IsDir():
		return nil // somebody made the same directory
	case c.Op == Mode && c.was == nil && now.IsDir():
		return nil
	case c.was == nil:
		return fs.ErrExist
	case now.Mode().Type() != c.was.Mode().Type():
		return errChanged
	case now.IsDir():
		return nil
	case now.Size() != c.was.Size() || !now.ModTime().Equal(c.was.ModTime()) || !os.SameFile(now, c.was):
		return errChanged
	case !changeTime(now).Equal(changeTime(c.was)) && !a.unlinked[inodeOf(c.was)]:
		return errChanged
	}
	return nil
}

// chmod sets the permissions of a file. A directory keeps its setgid bit, which
// it may have inherited from its parent.
func chmod(dir *os.Root, name string, perm fs.FileMode) error {
	fi, err := dir.Lstat(name)
	if err != nil {
		return err
	}
	if fi.IsDir() {
		perm |= fi.Mode() & fs.ModeSetgid
	}
	return dir.Chmod(name, perm)
}

func makeDir(from, dir *os.Root, name string, c *Change) error {
	if err := dir.Mkdir(name, c.Mode.Perm()|0o700); err != nil {
		if errors.Is(err, fs.ErrExist) {
			return nil
		}
		return err
	}
	if fi, err := from.Lstat(name); err == nil {
		if uid, gid, ok := owner(fi); ok {
			if err := dir.Lchown(name, uid, gid); err != nil {
				return err
			}
		}
	}
	return chmod(dir, name, c.Mode.Perm()|0o700) // without the umask; a stricter mode follows
}

func copySymlink(from, dir *os.Root, name string) error {
	target, err := from.Readlink(name)
	if err != nil {
		return err
	}
	temp := tempName()
	if err := dir.Symlink(target, temp); err != nil {
		return err
	}
	if fi, err := from.Lstat(name); err == nil {
		if uid, gid, ok := owner(fi); ok {
			dir.Lchown(temp, uid, gid) // the owner of a symlink has no effect
		}
	}
	return replace(dir, temp, name)
}

func copyFile(from, dir *os.Root, name string, mode fs.FileMode) error {
	src, err := openUpper(from, name)
	if err != nil {
		return err
	}
	defer src.Close()
	temp := tempName()
	dst, err := dir.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(dst, src)
	fi, statErr := src.Stat()
	if err = errors.Join(err, statErr); err == nil {
		if uid, gid, ok := owner(fi); ok {
			err = dst.Chown(uid, gid)
		}
		err = errors.Join(err, dst.Chmod(mode))
	}
	if err = errors.Join(err, dst.Close()); err == nil {
		dir.Chtimes(temp, fi.ModTime(), fi.ModTime()) // times are only a hint to build tools
	}
	if err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return replace(dir, temp, name)
}

func tempName() string { return ".loadout-" + rand.Text() + ".tmp" }

func replace(dir *os.Root, temp, name string) error {
	if err := dir.Rename(temp, name); err != nil {
		return errors.Join(err, dir.Remove(temp))
	}
	return nil
}

// cursor is a position in a directory tree. It keeps the directories on the
// path open, because consecutive changes are mostly in the same directory.
type cursor struct {
	top   *os.Root
	names []string
	open  []*os.Root // the directories in names
}

// dir opens a directory; "." is the top. It does not follow symlinks.
func (c *cursor) dir(p string) (*os.Root, error) {
	var want []string
	if p != "." {
		want = strings.Split(p, "/")
	}
	same := 0
	for same < len(want) && same < len(c.names) && want[same] == c.names[same] {
		same++
	}
	c.truncate(same)
	at := c.top
	if same > 0 {
		at = c.open[same-1]
	}
	for _, name := range want[same:] {
		next, err := openSubdir(at, name)
		if err != nil {
			return nil, fmt.Errorf("open directory: %w", fileerror.Cause(err))
		}
		c.names, c.open = append(c.names, name), append(c.open, next)
		at = next
	}
	return at, nil
}

// truncate closes all but the first n directories.
func (c *cursor) truncate(n int) {
	for _, d := range c.open[n:] {
		d.Close()
	}
	c.names, c.open = c.names[:n], c.open[:n]
}
