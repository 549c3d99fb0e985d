package clientconfig

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// lockWait is the maximum time to wait for another process that changes the
// same file.
const lockWait = 10 * time.Second

// lock is an exclusive lock on a configuration file and its backups.
type lock struct {
	root *os.Root
	file *os.File
	name string // name of the lock file in root
	held bool   // false if the file system does not support locks
}

// lockTarget waits for the lock on the file at target and creates the file's
// directory if necessary. The lock is a file next to target, which unlock
// deletes.
func lockTarget(target string) (*lock, error) {
	ctx, cancel := context.WithTimeoutCause(context.Background(), lockWait,
		fmt.Errorf("lock held by another process for more than %v", lockWait))
	defer cancel()
	dir, base := filepath.Split(target)
	for {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return nil, err
		}
		l, err := openLock(ctx, dir, ".loadout-"+base+".lock")
		if l != nil || err != nil && !errors.Is(err, fs.ErrNotExist) {
			return l, err
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// openLock returns a locked file, or nil if its previous holder has deleted it
// in the meantime. The error is [fs.ErrNotExist] if that holder deleted dir.
func openLock(ctx context.Context, dir, name string) (*lock, error) {
	root, err := os.OpenRoot(dir) // the directory of a project may contain symlinks
	if err != nil {
		return nil, err
	}
	l := &lock{root: root, name: name, held: true}
	if l.file, err = root.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600); err != nil {
		root.Close()
		return nil, err
	}
	switch err = filelock.Lock(ctx, l.file); {
	case errors.Is(err, errors.ErrUnsupported):
		l.held = false
		return l, nil
	case err == nil && l.isCurrent():
		return l, nil
	}
	return nil, errors.Join(err, l.file.Close(), root.Close())
}

// isCurrent reports whether the locked file still exists under its name.
func (l *lock) isCurrent() bool {
	mine, err := l.file.Stat()
	if err != nil {
		return false
	}
	now, err := l.root.Lstat(l.name)
	return err == nil && os.SameFile(mine, now)
}

// unlock deletes the lock file and releases the lock.
func (l *lock) unlock() {
	defer l.root.Close()
	if runtime.GOOS != "windows" {
		l.root.Remove(l.name)
		l.file.Close()
		return
	}
	l.file.Close() // before, because Windows does not delete an open file
	l.root.Remove(l.name)
}
