package library

import (
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Errors that callers can act on, besides [account.DeniedError],
// [skill.RefusedError] for an archive, and those of packages remote and store.
var (
	// ErrNotFound reports that something does not exist or that the principal
	// may not see it.
	ErrNotFound = store.ErrNotFound
	// ErrExists reports a name or a set of files that exists already.
	ErrExists = store.ErrExists
	// ErrConflict reports a concurrent change.
	ErrConflict = store.ErrConflict
	// ErrFull reports a full disk on the hub. The change is not stored.
	ErrFull = store.ErrFull
	// ErrTooMany reports that a limit on the number of items is reached.
	ErrTooMany = store.ErrTooMany
	// ErrInvalid reports invalid input.
	ErrInvalid = store.ErrInvalid
)

// TooLargeError reports that an upload exceeds the size limit.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("package too large (limit %d bytes)", e.Limit)
}

// BrokenError reports why a package holds no valid skill.
type BrokenError struct {
	Diagnostics skill.Diagnostics
}

func (e *BrokenError) Error() string {
	for _, d := range e.Diagnostics {
		if d.Severity == skill.Error {
			return "the skill does not load: " + printable.OneLine(d.Message)
		}
	}
	return "the skill does not load"
}

// NameError reports why a skill cannot have its name.
type NameError struct {
	Name string
	Why  string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("a skill cannot be named %.100q here: %s", e.Name, e.Why)
}

// ReferencedError reports the references to a skill. References that the
// principal may not see are only counted.
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

// notFound returns the error for a skill that does not exist or is not visible.
func notFound(id string) error { return fmt.Errorf("skill %.100q: %w", id, ErrNotFound) }

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

func isDenied(err error) bool {
	_, ok := errors.AsType[*account.DeniedError](err)
	return ok
}

// hideNotFound replaces any ErrNotFound by the error for the skill, to hide which
// step failed.
func hideNotFound(id string, err error) error {
	if isNotFound(err) {
		return notFound(id)
	}
	return err
}
