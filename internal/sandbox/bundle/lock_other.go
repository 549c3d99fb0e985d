//go:build !unix

package bundle

import (
	"errors"
	"io/fs"
	"os"
)

// lock does not lock, so unused bundles are never removed on this system.
func lock(_ *os.File, exclusive bool) error {
	if exclusive {
		return errors.ErrUnsupported
	}
	return nil
}

// hasMode always returns true: this system has no such permissions.
func hasMode(fs.FileInfo, fs.FileMode) bool { return true }
