//go:build !linux

package fileid

import "io/fs"

// Of returns the ID of a file. It reports false if the system does not provide
// one.
func Of(fs.FileInfo) (ID, bool) { return ID{}, false }
