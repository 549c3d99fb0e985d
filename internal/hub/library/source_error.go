package library

import (
	"errors"
	"fmt"
	"io/fs"

	"github.com/loadout-dev/loadout/internal/remote"
)

// SourceError says that a place could not be looked at, or a skill of it not be read, for a
// reason that lies there or on the way: the network, a server, a repository. It wraps the
// errors of package remote.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// wrapSourceError makes an error of package remote one of a place, unless it is of this machine:
// what files are called here is nobody's business.
func wrapSourceError(err error) error {
	if err == nil {
		return nil
	}
	if _, here := errors.AsType[*fs.PathError](err); here {
		return mapDiskFull(err)
	}
	if e, ok := errors.AsType[*remote.NotFoundError](err); ok {
		err = &remote.NotFoundError{What: e.What, Suggestions: e.Suggestions} // its hint is for who has git and a terminal
	}
	return &SourceError{err}
}

// InvalidError says why what was given cannot be kept, in words for who gave it. It
// matches [ErrInvalid].
type InvalidError struct{ Why string }

func (e *InvalidError) Error() string { return e.Why }

// Is makes the error match [ErrInvalid].
func (e *InvalidError) Is(target error) bool { return target == ErrInvalid }

func invalidf(format string, args ...any) error {
	return &InvalidError{fmt.Sprintf(format, args...)}
}
