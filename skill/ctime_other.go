//go:build !linux

package skill

import (
	"io/fs"
	"time"
)

// changeTime returns the zero time, because the change time is only read on
// Linux.
func changeTime(fs.FileInfo) time.Time { return time.Time{} }
