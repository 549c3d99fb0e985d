package library

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/remote"
)

// SourceError wraps an error from package remote that was caused by a source or
// the network.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// wrapSourceError wraps an error from package remote in a [*SourceError]. It
// does not wrap local errors, because they would reveal paths on this machine.
func wrapSourceError(err error) error {
	if err == nil {
		return nil
	}
	if _, here := errors.AsType[*fs.PathError](err); here {
		return mapDiskFull(err)
	}
	if e, ok := errors.AsType[*remote.NotFoundError](err); ok {
		err = &remote.NotFoundError{What: e.What, Suggestions: e.Suggestions} // its hint is for the command line
	}
	return &SourceError{err}
}

// InvalidError explains to the user why an argument is invalid. It matches
// [ErrInvalid].
type InvalidError struct{ Why string }

func (e *InvalidError) Error() string { return e.Why }

// Is reports whether target is [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}
