//go:build !linux

package installed

import (
	"errors"
	"io/fs"
	"os"
	"runtime"
)

// syncTree syncs all files below a directory.
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

// syncDir syncs the entries of a directory, if the system supports that.
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

// exchange always returns errors.ErrUnsupported, because this system cannot
// swap directories.
func exchange(*os.Root, string, string) error { return errors.ErrUnsupported }
