//go:build !unix

package catalog

import "io/fs"

// stampOfInfo returns a stamp without a file identity, for systems that do not
// provide one. On these systems, a directory that is reached twice is listed
// twice, and a symlink cycle is followed up to the maximum depth.
func stampOfInfo(fi fs.FileInfo) stamp {
	return stamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
}
