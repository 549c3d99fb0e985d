package installed

import (
	"errors"
	"fmt"
	"strings"
)

// ErrUnfinished says that a change is under way, or that its process was killed.
// The next [Dir.Begin] finishes it.
var ErrUnfinished = errors.New("a change of the installed skills is not finished")

// ErrEnded says that a [Change] was committed or closed before.
var ErrEnded = errors.New("the change has ended")

// NameError says that a skill cannot be installed or removed under a name.
type NameError struct {
	Name   string
	Other  string // what is there already and differs in case only, where that is the reason
	Reason string
}

func (e *NameError) Error() string { return fmt.Sprintf("the name %q: %s", e.Name, e.Reason) }

// ConflictError says that a change would lose something that is not as the lock
// has it.
type ConflictError struct {
	Name   string
	Locked bool // the lock knows a skill of that name
	// Differences are those of its files from the lock. One with [NotPlain] and
	// no path says that the skill's place is taken by a link or a file, which no
	// change replaces or removes.
	Differences []Difference
}

func (e *ConflictError) Error() string {
	switch {
	case !e.Replaceable():
		return fmt.Sprintf("%s is there already, and is a link or a file", e.Name)
	case !e.Locked:
		return fmt.Sprintf("%s is there already, and the lock does not know it", e.Name)
	}
	s := e.Name + " differs from the lock"
	for i, d := range e.Differences {
		if i > 0 {
			return s + fmt.Sprintf(" (and %d more)", len(e.Differences)-1)
		}
		s += ": " + d.String()
	}
	return s
}

// Replaceable reports whether [Change.Replace] would put another skill there.
func (e *ConflictError) Replaceable() bool {
	return len(e.Differences) != 1 || e.Differences[0].What != NotPlain || e.Differences[0].Path != ""
}

// NotInstalledError says that the lock does not know a skill.
type NotInstalledError struct {
	Name string
	Near []string // installed ones whose names are near, nearest first, 3 at most
}

func (e *NotInstalledError) Error() string {
	s := fmt.Sprintf("%s is not installed", e.Name)
	if len(e.Near) > 0 {
		s += "; there is " + strings.Join(e.Near, ", ")
	}
	return s
}

// DigestError says that the files of a skill are others than those that were
// promised.
type DigestError struct{ Name, Want, Got string }

func (e *DigestError) Error() string {
	return fmt.Sprintf("the files of %s have the digest %s, not %s", e.Name, e.Got, e.Want)
}

// LockError says that loadout.lock cannot be relied on, with all that is wrong
// with it.
type LockError struct {
	Problems []LockProblem // in the order of the file, [MaxProblems] at most
	More     int           // how many there are beyond
	Newer    bool          // a later version of this program wrote it
	Conflict bool          // it has the marks of a merge that git could not do
}

// LockProblem is one thing that is wrong with a lock.
type LockProblem struct {
	Line  int    // 1-based; 0 where it is about the whole
	Where string // as skills.pdf.digest; "" for the whole
	What  string
}

func (p LockProblem) String() string {
	s := p.What
	if p.Where != "" {
		s = p.Where + " " + s
	}
	if p.Line > 0 {
		s = fmt.Sprintf("line %d: %s", p.Line, s)
	}
	return s
}

func (e *LockError) Error() string {
	texts := make([]string, len(e.Problems))
	for i, p := range e.Problems {
		texts[i] = p.String()
	}
	s := "read " + LockFile + ": " + strings.Join(texts, "; ")
	if e.More > 0 {
		s += fmt.Sprintf(" (and %d more)", e.More)
	}
	return s
}
