// Package exit has the exit codes of the command, and errors that choose one and
// name the next step.
//
// Commands and the packages that only commands use return them. Other packages
// return errors of their own, which the command maps to exit codes. Start
// reading at [Error].
package exit

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
)

// Exit codes. Scripts rely on them.
const (
	OK          = 0
	Failure     = 1 // the command ran and found a problem
	Usage       = 2
	Refused     = 3 // refused by policy
	NotFound    = 4
	Missing     = 5 // a required component is missing
	Interrupted = 130
)

// Error is an error with an exit code and a hint for the next step. Without
// Err it only sets the code: the problem is already printed.
type Error struct {
	Code int
	Err  error
	Hint string
}

// Error returns the text of the error, without the hint.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code and hint.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with an exit code, a hint, and a text as of
// [fmt.Errorf].
func Errorf(code int, hint, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...), hint}
}

// Reported sets the exit code only: the problem is already printed.
var Reported = &Error{Code: Failure}

// FileCause returns the cause of a file error without its path.
func FileCause(err error) error {
	if pe, ok := errors.AsType[*fs.PathError](err); ok {
		return pe.Err
	}
	if le, ok := errors.AsType[*os.LinkError](err); ok {
		return le.Err
	}
	return err
}

// FileHint returns the exit code and hint for a named file that cannot be
// opened. what is what the user has to check, such as "the path given with -f".
func FileHint(err error, what string) (code int, hint string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound, "check " + what
	case errors.Is(err, fs.ErrPermission):
		return Failure, "check that you can read it"
	}
	return Failure, "check " + what
}
