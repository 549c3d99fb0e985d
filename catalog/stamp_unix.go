//go:build unix

package catalog

import (
	"io/fs"
	"syscall"
)

func stampOfInfo(fi fs.FileInfo) stamp {
	s := stamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
	if st, ok := fi.Sys().(*syscall.Stat_t); ok {
		s.id = fileID{uint64(st.Dev), st.Ino} // the type of Dev differs between systems
	}
	return s
}
