//go:build linux || darwin

package hub

import (
	"fmt"
	"io/fs"
	"syscall"

	"golang.org/x/sys/unix"
)

// diskFree returns the number of free bytes on the disk that contains dir, if the
// system reports it.
func diskFree(dir string) (free uint64, known bool) {
	var st unix.Statfs_t
	if err := unix.Statfs(dir, &st); err != nil {
		return 0, false
	}
	return st.Bavail * uint64(st.Bsize), true
}

// fileID returns a string that identifies a file on this machine, or "" if the
// system provides none.
func fileID(info fs.FileInfo) string {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ""
	}
	return fmt.Sprintf("%d/%d", st.Dev, st.Ino)
}
