//go:build !linux

package installed

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// settle waits until everything below a directory is on the disk.
func settle(root *os.Root, dir string) error {
	return fs.WalkDir(root.FS(), dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir():
			return syncDir(root, p)
		}
		f, err := root.OpenFile(p, os.O_RDWR, 0)
		if err != nil {
			return err
		}
		return errors.Join(f.Sync(), f.Close())
	})
}

// syncDir waits until the names in a directory are on the disk, where the system has
// a way to.
func syncDir(root *os.Root, dir string) error {
	if runtime.GOOS == "windows" {
		return nil
	}
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// exchange would make two directories change their places in one step.
func exchange(*os.Root, string, string) error { return errors.ErrUnsupported }
