package install

import (
	"io/fs"
	"syscall"
)

// stamped: a stamp tells that a file was not written.
const stamped = true

func stampOf(info fs.FileInfo) stamp {
	s := stamp{Modified: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Inode = st.Ino
		s.Changed = st.Ctim.Nano()
	}
	return s
}
