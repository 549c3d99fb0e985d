//go:build !unix

package privatefile

import (
	"io/fs"
	"os"
)

// unsafeReason always returns "". On this system, access control lists decide
// who can write, and a directory inherits them from the user's profile.
func unsafeReason(fs.FileInfo) string { return "" }

// SyncDir does nothing, because this system cannot sync directories.
func SyncDir(*os.Root) error { return nil }
