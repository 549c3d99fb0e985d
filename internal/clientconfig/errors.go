package clientconfig

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// Kinds of errors; test with errors.Is. A file that cannot be edited is a [FileError].
var (
	// ErrUnknown reports an unknown client.
	ErrUnknown = errors.New("unknown client")
	// ErrUnsupported reports a scope or remote server that the client does not support.
	ErrUnsupported = errors.New("not supported by the client")
	// ErrChanged reports that the file, or the target of a symlink, changed since the
	// change was planned. Plan again.
	ErrChanged = errors.New("file changed since it was read")
)

// kindError has a message for users and a kind for programs.
type kindError struct {
	kind    error
	message string
}

func (e kindError) Error() string { return e.message }
func (e kindError) Unwrap() error { return e.kind }

// FileError reports why a configuration file cannot be edited. It never contains content
// of the file.
type FileError struct {
	File string
	// Line and Column are 1-based, in lines and characters; 0 if the error is about the
	// whole file.
	Line, Column int
	// Problem describes the fault, Fix how to correct it.
	Problem, Fix string
	// Err is an underlying error, or nil.
	Err error
}

// Error returns "file:line:column: problem; fix".
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

// refusal is the reason why a text is not edited, at an offset; negative for the whole
// text. [locate] converts it to a FileError.
type refusal struct {
	offset       int
	problem, fix string
}

func (r *refusal) Error() string { return r.problem }

// locate adds the file name, line and column to a refusal.
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

// position returns the 1-based line and column, in characters, of an offset.
func position(src []byte, offset int) (line, column int) {
	line, start := 1, bomLen(src)
	for i, b := range src[:offset] {
		if b == '\n' {
			line, start = line+1, i+1
		}
	}
	return line, 1 + utf8.RuneCount(src[min(start, offset):offset])
}
