package library

import (
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// What a caller can act on, besides [account.DeniedError], [skill.RefusedError] for an
// archive, and those of packages remote and store.
var (
	// ErrNotFound says that there is no such thing, or that the principal may not know
	// of it.
	ErrNotFound = store.ErrNotFound
	// ErrExists says that there is one of that name, or with these files, already.
	ErrExists = store.ErrExists
	// ErrConflict says that it was changed in the meantime.
	ErrConflict = store.ErrConflict
	// ErrFull says that a disk of the hub is full. Nothing of the change is kept.
	ErrFull = store.ErrFull
	// ErrTooMany says that a bound on the number of things is reached.
	ErrTooMany = store.ErrTooMany
	// ErrInvalid says that what was given cannot be kept as it is.
	ErrInvalid = store.ErrInvalid
)

// TooLargeError says that an upload has more bytes than are taken.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("the package has more than %d bytes", e.Limit)
}

// BrokenError says that a package holds no skill that loads, and why.
type BrokenError struct {
	Diagnostics skill.Diagnostics
}

func (e *BrokenError) Error() string {
	for _, d := range e.Diagnostics {
		if d.Severity == skill.Error {
			return "the skill does not load: " + skill.OneLine(d.Message)
		}
	}
	return "the skill does not load"
}

// NameError says why a skill cannot have the name that it has.
type NameError struct {
	Name string
	Why  string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("a skill cannot be named %.100q here: %s", e.Name, e.Why)
}

// ReferencedError says what would lose a skill. Of what the principal may not see, the
// number alone is told.
type ReferencedError struct {
	Skill      string // its id
	Name       string
	References References
}

func (e *ReferencedError) Error() string {
	return fmt.Sprintf("skill %q is in use: %s", e.Name, e.References.summary())
}

// Is makes the error match [store.ErrReferenced].
func (e *ReferencedError) Is(target error) bool { return target == store.ErrReferenced }

// notFound is how everything fails that is not there, or that a principal may not know
// of.
func notFound(id string) error { return fmt.Errorf("skill %.100q: %w", id, ErrNotFound) }

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

func isDenied(err error) bool {
	_, ok := errors.AsType[*account.DeniedError](err)
	return ok
}

// orNotFound hides in which step a thing was not found.
func orNotFound(id string, err error) error {
	if isNotFound(err) {
		return notFound(id)
	}
	return err
}
