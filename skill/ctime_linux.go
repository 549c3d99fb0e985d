package skill

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns the time of the last change to a file's content or
// attributes, or the zero time if unknown.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
