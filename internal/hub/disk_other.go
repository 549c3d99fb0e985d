//go:build !linux && !darwin

package hub

import "io/fs"

// diskFree returns false, because the free space is unknown on this system.
func diskFree(string) (free uint64, known bool) { return 0, false }

// fileID returns "", because this system provides no file IDs.
func fileID(fs.FileInfo) string { return "" }
