//go:build unix

package clientconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner of another file, so that root does not take over a user's
// file. It fails if the owner cannot be set; a group that cannot be set is ignored.
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
