//go:build unix

package bundle

import (
	"io/fs"
	"os"
	"syscall"
)

// lock locks an open directory until it is closed. It waits for a shared lock,
// but fails if an exclusive lock is not available.
func lock(f *os.File, exclusive bool) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX | syscall.LOCK_NB
	}
	for {
		if err := syscall.Flock(int(f.Fd()), how); err != syscall.EINTR {
			return err
		}
	}
}

// hasMode reports whether the file belongs to this user and has permissions
// perm.
func hasMode(fi fs.FileInfo, perm fs.FileMode) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && int(st.Uid) == os.Geteuid() && fi.Mode()&(fs.ModePerm|fs.ModeSetuid|fs.ModeSetgid|fs.ModeSticky) == perm
}
