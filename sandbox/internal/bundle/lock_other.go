//go:build !unix

package bundle

import (
	"errors"
	"io/fs"
	"os"
)

// lock locks nothing, so that nothing unused is removed here.
func lock(_ *os.File, exclusive bool) error {
	if exclusive {
		return errors.ErrUnsupported
	}
	return nil
}

// asMade cannot tell.
func asMade(fs.FileInfo, fs.FileMode) bool { return true }
