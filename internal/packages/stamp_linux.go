package packages

import (
	"io/fs"
	"syscall"
)

// hasChangeTime reports whether stamps contain the change time, so that an
// unchanged stamp means an unchanged file.
const hasChangeTime = true

func newStamp(info fs.FileInfo) stamp {
	s := stamp{Modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode = st.Ino
		s.Changed = st.Ctim.Nano()
	}
	return s
}
