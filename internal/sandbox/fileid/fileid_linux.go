package fileid

import (
	"io/fs"
	"syscall"
)

// Of returns the ID of a file. It reports false if the system does not provide
// one.
func Of(info fs.FileInfo) (ID, bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return ID{}, false
	}
	return ID{
		Device: uint64(st.Dev), Inode: st.Ino, Size: st.Size, Mode: st.Mode, UID: st.Uid, GID: st.Gid,
		Modified: st.Mtim.Nano(), Changed: st.Ctim.Nano(),
	}, true
}
