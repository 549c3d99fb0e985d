// Package exit defines the exit codes of the command, and errors that carry an
// exit code and a hint for the user.
//
// It is used by the commands and by packages that only commands use. Other
// packages return their own errors, which the command maps to exit codes. Start
// reading at [Error].
package exit

import (
	"errors"
	"fmt"
	"io/fs"
)

// Exit codes. Scripts rely on them.
const (
	OK       = 0
	Failure  = 1 // the command ran and found a problem
	Usage    = 2
	Refused  = 3 // refused by policy
	NotFound = 4
	Missing  = 5 // a required component is missing
	// NotMeasurable means that a test had nothing to measure.
	NotMeasurable = 6
	Interrupted   = 130
)

// Error is an error with an exit code and a hint for the next step. If Err is
// nil, the error was already printed, and only Code is used.
type Error struct {
	Code int
	Err  error
	Hint string
}

// Error returns the text of Err without the hint. If Err is nil, it returns a
// message that says the problem was already printed.
func (e *Error) Error() string {
	if e.Err == nil {
		return "problem already reported"
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// Errorf returns an error with an exit code, a hint, and a message formatted as
// by [fmt.Errorf].
func Errorf(code int, hint, format string, args ...any) error {
	return &Error{code, fmt.Errorf(format, args...), hint}
}

// Reported is returned if the problem was already printed. The program then
// prints nothing and exits with the code [Failure].
var Reported = &Error{Code: Failure}

// FileHint returns the exit code and hint for a file that the user named and
// that cannot be opened. subject names what the user should check, such as "the
// path given with -f".
func FileHint(err error, subject string) (code int, hint string) {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return NotFound, "check " + subject
	case errors.Is(err, fs.ErrPermission):
		return Failure, "check that you can read it"
	}
	return Failure, "check " + subject
}
