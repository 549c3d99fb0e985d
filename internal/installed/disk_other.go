//go:build !linux

package installed

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// syncTree writes everything below a directory to the disk.
func syncTree(root *os.Root, dir string) error {
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

// syncDir writes the names in a directory to the disk, if the system supports
// that.
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

// exchange is not supported on this system.
func exchange(*os.Root, string, string) error { return errors.ErrUnsupported }
