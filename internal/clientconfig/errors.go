package clientconfig

import (
	"errors"
	"fmt"
	"unicode/utf8"
)

// The kinds of error a program can act on; test with errors.Is. A file that
// cannot be edited is a [FileError].
var (
	// ErrUnknown: there is no client of that name.
	ErrUnknown = errors.New("unknown client")
	// ErrUnsupported: the client has no such scope, or no remote servers.
	ErrUnsupported = errors.New("not supported by the client")
	// ErrChanged: the file, or the place a link leads to, is not what it was
	// when the change was planned. Plan again.
	ErrChanged = errors.New("changed since it was read")
)

// kindError says one thing to the person and another to the program.
type kindError struct {
	kind    error
	message string
}

func (e kindError) Error() string { return e.message }
func (e kindError) Unwrap() error { return e.kind }

// FileError says why a configuration file cannot be edited. It never carries
// content of the file.
type FileError struct {
	File string
	// Line and Column are 1-based, counted in lines and characters; 0 where
	// the error is about the file as a whole.
	Line, Column int
	// Problem says what is wrong, Fix what to do about it.
	Problem, Fix string
	// Err is the cause, if it came from outside; nil otherwise.
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

// refusal is a reason not to edit a text, at an offset in it; below zero for
// the text as a whole. [locate] turns it into a FileError.
type refusal struct {
	offset       int
	problem, fix string
}

func (r *refusal) Error() string { return r.problem }

// locate gives a refusal the file's name, a line and a column.
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
