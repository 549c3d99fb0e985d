package library

import (
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Errors that a caller can handle, in addition to [account.DeniedError],
// [skill.RefusedError] for an archive, and those of packages remote and store.
var (
	// ErrNotFound says that an item does not exist or that the principal may not
	// see it.
	ErrNotFound = store.ErrNotFound
	// ErrExists says that the name or a version with the files already exists.
	ErrExists = store.ErrExists
	// ErrConflict says that the item changed since the caller read it.
	ErrConflict = store.ErrConflict
	// ErrFull says that a disk of the hub is full. The change is not stored.
	ErrFull = store.ErrFull
	// ErrTooMany says that the number of items would exceed its limit.
	ErrTooMany = store.ErrTooMany
	// ErrInvalid says that an argument is invalid.
	ErrInvalid = store.ErrInvalid
)

// TooLargeError says that an upload exceeds the size limit.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("package too large (limit %d bytes)", e.Limit)
}

// BrokenError says why the SKILL.md in a package cannot be loaded.
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

// NameError says why a skill cannot have its name.
type NameError struct {
	Name string
	Why  string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("a skill cannot be named %.100q here: %s", e.Name, e.Why)
}

// ReferencedError says which references to a skill prevent an operation.
type ReferencedError struct {
	Skill      string // ID of the skill
	Name       string
	References References
}

func (e *ReferencedError) Error() string {
	return fmt.Sprintf("skill %q is in use: %s", e.Name, e.References.summarize())
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

// hideNotFound replaces [ErrNotFound] by the same error for the whole skill, so
// that a caller cannot tell which item is missing.
func hideNotFound(id string, err error) error {
	if isNotFound(err) {
		return notFound(id)
	}
	return err
}
