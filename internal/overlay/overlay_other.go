//go:build !linux

package overlay

import (
	"io/fs"
	"os"
	"time"
)

// No other system has overlay file systems, so no directory has changes.

const noFollow = 0

func isWhiteout(fs.FileInfo) bool { return false }

func isOpaque(*os.Root) (bool, error) { return false, nil }

func owner(fs.FileInfo) (uid, gid int, ok bool) { return 0, 0, false }

func changeTime(fi fs.FileInfo) time.Time { return fi.ModTime() }

type inode struct{}

func inodeOf(fs.FileInfo) inode { return inode{} }
