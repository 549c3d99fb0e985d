// Package fileerror shortens the errors of file operations.
package fileerror

import (
	"errors"
	"io/fs"
	"os"
)

// Cause returns the cause of a file error, without the operation or the path,
// for messages that name the file themselves. It returns other errors unchanged.
func Cause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}
