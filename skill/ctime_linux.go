package skill

import (
	"io/fs"
	"syscall"
	"time"
)

// changeTime returns the time when the content or the attributes of a file last
// changed, or the zero time if it is not known.
func changeTime(info fs.FileInfo) time.Time {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return time.Unix(st.Ctim.Unix())
	}
	return time.Time{}
}
