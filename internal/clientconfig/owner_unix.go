//go:build unix

package clientconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner sets the owner of f to that of the original file, so that running
// as root does not change the owner of a user's file. It returns an error if
// the owner cannot be set, but ignores a group that cannot be set.
func keepOwner(f *os.File, info fs.FileInfo) error {
	now, err := f.Stat()
	if err != nil {
		return err
	}
	old, ok := info.Sys().(*syscall.Stat_t)
	is, known := now.Sys().(*syscall.Stat_t)
	if !ok || !known || is.Uid == old.Uid && is.Gid == old.Gid {
		return nil
	}
	if err := f.Chown(int(old.Uid), int(old.Gid)); err != nil && is.Uid != old.Uid {
		return err
	}
	return nil
}
