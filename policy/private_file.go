package policy

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

// PrivateFile is a file of mode 0600 that belongs to this user, in a directory
// that no other user can write. Any number of processes can change it at the
// same time. An [*UnsafeFileError] is returned if the file or its directory is
// not private. PrivateFile keeps no file open and is safe for concurrent use.
type PrivateFile struct {
	path     string
	maxBytes int64
}

// NewPrivateFile returns the file at path, with a size limit in bytes.
func NewPrivateFile(path string, most int64) *PrivateFile { return &PrivateFile{path, most} }

// Read returns the content. It returns [fs.ErrNotExist] if there is no file.
func (f *PrivateFile) Read() ([]byte, error) {
	root, err := openDir(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return f.read(root)
}

func (f *PrivateFile) read(root *os.Root) ([]byte, error) {
	name := filepath.Base(f.path)
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if m := info.Mode().Perm(); m&0o077 != 0 && runtime.GOOS != "windows" && info.Mode().IsRegular() {
		return nil, &UnsafeFileError{Path: f.path, Reason: fmt.Sprintf("readable by others (mode %04o)", m)}
	}
	return readFile(root, name, f.path, f.maxBytes)
}

// Change replaces the content with the result of edit, while no other process
// changes it. edit gets nil if there is no file; if edit returns an error,
// nothing changes. Change creates the directory if necessary and syncs the
// content to disk.
func (f *PrivateFile) Change(ctx context.Context, edit func(old []byte) ([]byte, error)) error {
	dir, name := filepath.Split(f.path)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	root, err := openDir(filepath.Clean(dir))
	if err != nil {
		return err
	}
	defer root.Close()
	lock, err := openFile(root, name+lockName, f.path+lockName, os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := filelock.Lock(ctx, lock); err != nil {
		return err
	}
	old, err := f.read(root)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	data, err := edit(old)
	if err != nil {
		return err
	}
	if int64(len(data)) > f.maxBytes {
		return fmt.Errorf("%s too large (%d bytes, limit %d)", f.path, len(data), f.maxBytes)
	}
	return replaceFile(root, name, data)
}

// replaceFile replaces a file atomically and syncs it to disk.
func replaceFile(root *os.Root, name string, data []byte) error {
	temp := tempPrefix + rand.Text()
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
	return syncDir(root)
}

// CheckSecretName returns an error unless s can name a secret: letters, digits
// and _, at most 128, not starting with a digit. The error contains the name.
func CheckSecretName(s string) error { return checkSecretName(s) }
