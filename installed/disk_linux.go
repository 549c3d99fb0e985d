package installed

import (
	"errors"
	"os"
	"path"

	"golang.org/x/sys/unix"
)

// settle waits until everything below a directory is on the disk. It is one call for
// the whole file system: with one for each file, a disk that takes milliseconds for
// each would take many seconds for 400 skills.
func settle(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return os.NewSyscallError("syncfs", unix.Syncfs(int(f.Fd())))
}

// syncDir waits until the names in a directory are on the disk.
func syncDir(root *os.Root, dir string) error {
	f, err := root.Open(dir)
	if err != nil {
		return err
	}
	defer f.Close()
	return f.Sync()
}

// exchange makes two directories change their places in one step, or fails with
// errors.ErrUnsupported.
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
