package installed

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// syncTree syncs all files below a directory. It syncs the whole file system
// with a single call, because syncing each file takes many seconds for 400
// skills on a slow disk.
func syncTree(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}

// syncDir syncs the entries of a directory.
func syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// exchange swaps two directories atomically. If the file system does not
// support that, it returns errors.ErrUnsupported.
func exchange(root *os.Root, a, b string) error {
	da, err := root.Open(path.Dir(a))
	if err != nil {
		return err
	}
	defer da.Close()
	db, err := root.Open(path.Dir(b))
	if err != nil {
		return err
	}
	defer db.Close()
	err = unix.Renameat2(int(da.Fd()), path.Base(a), int(db.Fd()), path.Base(b), unix.RENAME_EXCHANGE)
	switch {
	case errors.Is(err, unix.EINVAL), errors.Is(err, unix.ENOSYS), errors.Is(err, unix.ENOTSUP):
		return errors.ErrUnsupported
	case err != nil:
		return &os.LinkError{Op: "exchange", Old: a, New: b, Err: err}
	}
	return nil
}
