package installed

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnfinished is returned while a change is in progress, or after its process
// was killed. The next [Dir.Begin] finishes or reverts the change.
var ErrUnfinished = errors.New("a change to the installed skills is unfinished")

// ErrChangeEnded is returned if a [Change] is used after Commit or Close.
var ErrChangeEnded = errors.New("change already committed or closed")

// NameError is returned if a skill to install or remove has an invalid name.
type NameError struct {
	Name   string
	Other  string // existing name that differs only in letter case, or ""
	Reason string
}

func (e *NameError) Error() string { return fmt.Sprintf("invalid skill name %q: %s", e.Name, e.Reason) }

// ConflictError is returned if a change would delete files that differ from the
// lockfile.
type ConflictError struct {
	Name       string
	InLockfile bool // whether the lockfile has a skill with that name
	// Differences lists how the files differ from the lockfile. A single
	// [NotPlain] without a path means that the skill's path is a symlink or a
	// file, which is never replaced or removed.
	Differences []Difference
}

func (e *ConflictError) Error() string {
	switch {
	case !e.Replaceable():
		return fmt.Sprintf("%s exists and is a symbolic link or a file", e.Name)
	case !e.InLockfile:
		return fmt.Sprintf("%s exists but is not in the lockfile", e.Name)
	}
	s := e.Name + " differs from the lockfile"
	for i, d := range e.Differences {
		if i > 0 {
			return s + fmt.Sprintf(" (and %d more)", len(e.Differences)-1)
		}
		s += ": " + d.String()
	}
	return s
}

// Replaceable reports whether [Change.Replace] can replace the existing
// directory.
func (e *ConflictError) Replaceable() bool {
	return len(e.Differences) != 1 || e.Differences[0].Kind != NotPlain || e.Differences[0].Path != ""
}

// NotInstalledError is returned if a skill is not in the lockfile.
type NotInstalledError struct {
	Name        string
	Suggestions []string // up to 3 similar names of installed skills, closest first
}

func (e *NotInstalledError) Error() string {
	s := fmt.Sprintf("%s is not installed", e.Name)
	if len(e.Suggestions) > 0 {
		s += "; did you mean " + strings.Join(e.Suggestions, ", ") + "?"
	}
	return s
}

// DigestError is returned if the digest of a skill's files differs from the
// expected one.
type DigestError struct{ Name, Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("digest mismatch for %s: got %s, want %s", e.Name, e.Got, e.Want)
}

// LockfileError is returned if loadout.lock is invalid. It lists the problems.
type LockfileError struct {
	Problems []LockfileProblem // up to [MaxProblems], in file order
	Omitted  int               // number of problems not listed
	Newer    bool              // the file was written by a later version of this program
	Conflict bool              // the file contains Git conflict markers
}

// LockfileProblem describes a problem in a lockfile and its position.
type LockfileProblem struct {
	Line    int    // 1-based; 0 if it concerns the whole file
	Field   string // for example skills.pdf.digest; "" for the whole file
	Message string
}

func (p LockfileProblem) String() string {
	s := p.Message
	if p.Field != "" {
		s = p.Field + " " + s
	}
	if p.Line > 0 {
		s = fmt.Sprintf("line %d: %s", p.Line, s)
	}
	return s
}

func (e *LockfileError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	s := "read " + LockfileName + ": " + strings.Join(texts, "; ")
	if e.Omitted > 0 {
		s += fmt.Sprintf(" (and %d more)", e.Omitted)
	}
	return s
}
