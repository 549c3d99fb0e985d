//go:build !unix

package catalog

import "io/fs"

// stampOfInfo has no identity to give. A directory that is reached twice is
// listed twice there, and a link that leads back is followed down to the
// deepest level that is searched.
func stampOfInfo(fi fs.FileInfo) stamp {
	return stamp{size: fi.Size(), mtime: fi.ModTime().UnixNano()}
}
