//go:build !linux && !darwin

package packages

import "io/fs"

// hasChangeTime is false on this system, so each check reads all files.
const hasChangeTime = false

func newStamp(info fs.FileInfo) stamp { return stamp{Modified: info.ModTime().UnixNano()} }
