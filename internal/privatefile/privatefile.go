// Package privatefile reads and replaces files that belong only to the current
// user: grants, secrets, tokens and logs. It rejects files and directories that
// another user could have written, and never follows symlinks. Start reading at
// [File] for a single file and [OpenDir] for a directory of files.
package privatefile

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// TempPrefix is the prefix of the names of temporary files.
const TempPrefix = ".new-"

const lockName = ".lock"

// File is a file of mode 0600 that belongs to the current user, in a directory
// that no other user can write to. Several processes can change it at the same
// time. If the file or its directory is not private, methods return an
// [*UnsafeError]. File keeps no file open and is safe for concurrent use.
type File struct {
	path     string
	maxBytes int64
}

// New returns the file at path. maxBytes is its maximum size. New does not
// access the file.
func New(path string, maxBytes int64) *File { return &File{path, maxBytes} }

// Path returns the path passed to [New].
func (f *File) Path() string { return f.path }

// Read returns the file's content. If the file does not exist, the error is
// [fs.ErrNotExist].
func (f *File) Read() ([]byte, error) {
	root, err := OpenDir(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return f.read(root)
}

func (f *File) read(root *os.Root) ([]byte, error) {
	name := filepath.Base(f.path)
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if m := info.Mode().Perm(); m&0o077 != 0 && runtime.GOOS != "windows" && info.Mode().IsRegular() {
		return nil, &UnsafeError{Path: f.path, Reason: fmt.Sprintf("readable by others (mode %04o)", m)}
	}
	return ReadFile(root, name, f.path, f.maxBytes)
}

// Change replaces the file's content with the result of edit. No other process
// can change the file at the same time. If the file does not exist, old is nil.
// If edit returns an error, the file is unchanged. Change creates the directory
// if necessary and syncs the content.
func (f *File) Change(ctx context.Context, edit func(old []byte) ([]byte, error)) error {
	return f.change(ctx, edit, func(err error) bool { return errors.Is(err, fs.ErrNotExist) })
}

// Renew is like [File.Change], but replaces a file that cannot be read, for
// example because it is not private, is too large or is a symlink. In that
// case, old is nil. The target of a symlink is unchanged. Use Renew for content
// that can be recomputed.
func (f *File) Renew(ctx context.Context, edit func(old []byte) ([]byte, error)) error {
	return f.change(ctx, edit, func(error) bool { return true })
}

// change changes the file. If reading it fails and isMissing returns true for
// the error, the file is treated as missing.
func (f *File) change(ctx context.Context, edit func(old []byte) ([]byte, error), isMissing func(error) bool) error {
	dir, name := filepath.Split(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := OpenDir(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	lock, err := lockFile(ctx, root, name+lockName, f.path+lockName)
	if err != nil {
		return err
	}
	defer lock.Close()
	old, err := f.read(root)
	if err != nil {
		if !isMissing(err) {
			return err
		}
		old = nil
	}
	data, err := edit(old)
	if err != nil {
		return err
	}
	if int64(len(data)) > f.maxBytes {
		return fmt.Errorf("%s too large (%d bytes, limit %d)", f.path, len(data), f.maxBytes)
	}
	return ReplaceFile(root, name, data)
}

// lockFile opens a file and waits for its lock. Closing the file releases the
// lock.
func lockFile(ctx context.Context, root *os.Root, name, path string) (*os.File, error) {
	lock, err := OpenFile(root, name, path, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return nil, err
	}
	if err := filelock.Lock(ctx, lock); err != nil {
		lock.Close()
		return nil, err
	}
	return lock, nil
}

// ReplaceFile atomically replaces a file in root and syncs it. If the process
// is killed, a file with the prefix [TempPrefix] may be left.
func ReplaceFile(root *os.Root, name string, data []byte) error {
	temp := TempPrefix + rand.Text()
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, name)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return SyncDir(root)
}
