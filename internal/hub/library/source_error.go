package library

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/remote"
)

// SourceError reports that a source or one of its skills cannot be read because
// of the source or the network. It wraps the errors of package remote.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// wrapSourceError wraps errors of package remote in a [*SourceError], except
// for local errors: those would reveal paths of this machine.
func wrapSourceError(err error) error {
	if err == nil {
		return nil
	}
	if _, here := errors.AsType[*fs.PathError](err); here {
		return mapDiskFull(err)
	}
	if e, ok := errors.AsType[*remote.NotFoundError](err); ok {
		err = &remote.NotFoundError{What: e.What, Suggestions: e.Suggestions} // without the hint, which is for the command line
	}
	return &SourceError{err}
}

// InvalidError explains why input is invalid, for the user who gave it. It
// matches [ErrInvalid].
type InvalidError struct{ Why string }

func (e *InvalidError) Error() string { return e.Why }

// Is makes the error match [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}
