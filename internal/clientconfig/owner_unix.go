//go:build unix

package clientconfig

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives f the owner of another file, so that root, changing a file
// of somebody's, does not take it from them. It fails where the owner cannot be
// made the same; a group that cannot is let go.
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
