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

// OwnFile is a file of mode 0600 that is this user's alone, in a directory that
// nobody else can write. Any number of processes change it at once. What is not
// so is refused with an [*UnsafeError], as is a file that others can read.
// Nothing is kept open. It is safe for concurrent use.
type OwnFile struct {
	path string
	most int64
}

// NewOwnFile returns the file at path, of at most most bytes.
func NewOwnFile(path string, most int64) *OwnFile { return &OwnFile{path, most} }

// Read returns the content, which is whole. Its error is [fs.ErrNotExist] where
// there is no file.
func (f *OwnFile) Read() ([]byte, error) {
	root, err := openDir(filepath.Dir(f.path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return f.read(root)
}

func (f *OwnFile) read(root *os.Root) ([]byte, error) {
	name := filepath.Base(f.path)
	info, err := root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if m := info.Mode().Perm(); m&0o077 != 0 && runtime.GOOS != "windows" && info.Mode().IsRegular() {
		return nil, &UnsafeError{Path: f.path, Reason: fmt.Sprintf("others can read it (mode %04o)", m)}
	}
	return readFile(root, name, f.path, f.most)
}

// Change puts in place what edit makes of the content, nil where there is none,
// while nobody else changes it; an error of edit changes nothing. The directory
// is made where it is missing. The content is on disk when it returns.
func (f *OwnFile) Change(ctx context.Context, edit func(old []byte) ([]byte, error)) error {
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
	if err := filelock.Wait(ctx, lock); err != nil {
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
	if int64(len(data)) > f.most {
		return fmt.Errorf("%s would have %d bytes, more than %d", f.path, len(data), f.most)
	}
	return place(root, name, data)
}

// place puts a file in place, whole and on disk.
func place(root *os.Root, name string, data []byte) error {
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

// CheckSecretName accepts what can be the name of a secret: letters, digits and
// _, at most 128, of which the first is no digit. Its error repeats the name.
func CheckSecretName(s string) error { return checkSecret(s) }
