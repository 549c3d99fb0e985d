package overlay

import (
	"errors"
	"io/fs"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// noFollow holds flags for opening a file. With them, opening a symlink fails
// and opening a pipe does not block.
const noFollow = syscall.O_NOFOLLOW | syscall.O_NONBLOCK

// opaqueAttribute is the extended attribute of an upper directory that hides
// the entries of the lower one, in an overlay mounted by an unprivileged user.
const opaqueAttribute = "user.overlay.opaque"

// isWhiteout reports whether an entry of an upper directory stands for a
// deletion: a character device with number 0.
func isWhiteout(fi fs.FileInfo) bool {
	st, ok := fi.Sys().(*syscall.Stat_t)
	return ok && st.Mode&syscall.S_IFMT == syscall.S_IFCHR && st.Rdev == 0
}

// isOpaque reports whether an upper directory hides the entries of the lower
// one.
func isOpaque(dir *os.Root) (bool, error) {
	f, err := dir.Open(".")
	if err != nil {
		return false, err
	}
	defer f.Close()
	value := make([]byte, 8)
	n, err := unix.Fgetxattr(int(f.Fd()), opaqueAttribute, value)
	if errors.Is(err, unix.ENODATA) || errors.Is(err, unix.ENOTSUP) {
		return false, nil
	}
	return err == nil && n == 1 && value[0] == 'y', err
}

// owner returns the owner of a file. It returns false unless this program runs
// as root and can give a copy the same owner.
func owner(fi fs.FileInfo) (uid, gid int, ok bool) {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok || os.Geteuid() != 0 {
		return 0, 0, false
	}
	return int(st.Uid), int(st.Gid), true
}

// changeTime returns the time of the last change of a file: of its content, its
// attributes or its name. No program can set it.
func changeTime(fi fs.FileInfo) time.Time {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return fi.ModTime()
	}
	return time.Unix(st.Ctim.Unix())
}

// inode identifies a file while it exists.
type inode struct{ device, number uint64 }

func inodeOf(fi fs.FileInfo) inode {
	st, ok := fi.Sys().(*syscall.Stat_t)
	if !ok {
		return inode{}
	}
	return inode{uint64(st.Dev), st.Ino}
}
