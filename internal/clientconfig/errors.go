package clientconfig

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Errors for use with errors.Is. If a file cannot be edited, the error is a
// [FileError].
var (
	// ErrUnknown is returned for an unknown client.
	ErrUnknown = errors.New("unknown client")
	// ErrUnsupported is returned if the client does not support a scope or a
	// remote server.
	ErrUnsupported = errors.New("not supported by the client")
	// ErrChanged is returned if the file, or the target of a symlink, changed
	// after the change was planned. The caller should plan again.
	ErrChanged = errors.New("file changed since it was read")
)

// kindError combines a message for users with a sentinel error.
type kindError struct {
	kind    error
	message string
}

func (e kindError) Error() string { return e.message }
func (e kindError) Unwrap() error { return e.kind }

// FileError reports why a configuration file cannot be edited. It never quotes
// the file.
type FileError struct {
	File string
	// Line and Column are 1-based; columns count characters. They are 0 if the
	// error concerns the whole file.
	Line, Column int
	// Problem describes the fault, and Fix says how to correct it.
	Problem, Fix string
	// Err is the underlying error, or nil.
	Err error
}

// Error returns a message of the form "file:line:column: problem; fix".
func (e *FileError) Error() string {
	at := e.File
	if e.Line > 0 {
		at = fmt.Sprintf("%s:%d:%d", e.File, e.Line, e.Column)
	}
	return at + ": " + e.Problem + "; " + e.Fix
}

func (e *FileError) Unwrap() error { return e.Err }

const (
	fixSyntax = "correct the file, or add the entry by hand"
	fixByHand = "change it by hand"
)

// refusal reports why a document cannot be edited. The offset is negative if
// the problem concerns the whole document. [locate] converts a refusal to a
// FileError.
type refusal struct {
	offset       int
	problem, fix string
}

func (r *refusal) Error() string { return r.problem }

// locate converts a refusal to a FileError with the line and column of its
// offset.
func locate(err error, file string, src []byte) error {
	var r *refusal
	if !errors.As(err, &r) {
		return err
	}
	e := &FileError{File: file, Problem: r.problem, Fix: r.fix}
	if r.offset >= 0 {
		e.Line, e.Column = position(src, min(r.offset, len(src)))
	}
	return e
}

// position returns the 1-based line and column of an offset. Columns count
// characters.
func position(src []byte, offset int) (line, column int) {
	line, start := 1, bomLen(src)
	for i, b := range src[:offset] {
		if b == '\n' {
			line, start = line+1, i+1
		}
	}
	return line, 1 + utf8.RuneCount(src[min(start, offset):offset])
}
