//go:build !unix

package bundle

import (
	"errors"
	"io/fs"
	"os"
)

// lock does nothing for a shared lock, because this system does not support
// file locks. For an exclusive lock, it returns an error, so that unused
// bundles are never removed.
func lock(_ *os.File, exclusive bool) error {
	if exclusive {
		return errors.ErrUnsupported
	}
	return nil
}

// hasMode always returns true, because this system has no Unix permissions.
func hasMode(fs.FileInfo, fs.FileMode) bool { return true }
