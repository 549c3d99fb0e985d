package privatefile

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/loadout-dev/loadout/internal/printable"
)

// ErrNoDir is returned by [LockDir] if the directory does not exist.
var ErrNoDir = errors.New("directory does not exist")

// LockDir opens a directory and runs change while holding the directory's lock.
// If the directory does not exist, the error is [ErrNoDir].
func LockDir(ctx context.Context, dir string, change func(*os.Root) error) error {
	root, err := OpenDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return ErrNoDir
	}
	if err != nil {
		return err
	}
	defer root.Close()
	lock, err := lockFile(ctx, root, lockName, filepath.Join(dir, lockName))
	if err != nil {
		return err
	}
	defer lock.Close()
	return change(root)
}

// DamagedError is returned if the content of a file is invalid.
type DamagedError struct {
	Path string
	Err  error
}

func (e *DamagedError) Error() string { return e.Path + ": " + e.Err.Error() }
func (e *DamagedError) Unwrap() error { return e.Err }

// Reason returns the message of err. For an [*UnsafeError] or a
// [*DamagedError], it omits the path at the start.
func Reason(err error) string {
	if u, ok := errors.AsType[*UnsafeError](err); ok {
		return u.Reason
	}
	if d, ok := errors.AsType[*DamagedError](err); ok {
		return printable.Text(d.Err.Error(), 1000)
	}
	return printable.Text(err.Error(), 1000)
}
