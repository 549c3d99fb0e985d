package library

import (
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// Errors that callers can handle, in addition to [account.DeniedError],
// [skill.RefusedError] for an archive, and errors from packages remote and store.
var (
	// ErrNotFound means that an item does not exist or that the principal is not
	// allowed to see it.
	ErrNotFound = store.ErrNotFound
	// ErrExists means that the name, or a version with these files, already exists.
	ErrExists = store.ErrExists
	// ErrConflict means that the item has changed since the caller read it.
	ErrConflict = store.ErrConflict
	// ErrFull means that a disk of the hub is full and nothing was stored.
	ErrFull = store.ErrFull
	// ErrTooMany means that a limit on the number of items would be exceeded.
	ErrTooMany = store.ErrTooMany
	// ErrTooManyComments means that no more comments can be added to a version.
	ErrTooManyComments = fmt.Errorf("%w comments", ErrTooMany)
	// ErrInvalid means that an argument is invalid.
	ErrInvalid = store.ErrInvalid
)

// TooLargeError reports that an upload exceeds Limit bytes.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("package too large (limit %d bytes)", e.Limit)
}

// BrokenError reports why a package's SKILL.md cannot be loaded.
type BrokenError struct {
	Diagnostics skill.Diagnostics
}

func (e *BrokenError) Error() string {
	for _, d := range e.Diagnostics {
		if d.Severity == skill.Error {
			return "skill does not load: " + printable.OneLine(d.Message)
		}
	}
	return "skill does not load"
}

// NameError reports why a skill name is not allowed.
type NameError struct {
	Name string
	Why  string
}

func (e *NameError) Error() string {
	return fmt.Sprintf("a skill cannot be named %.100q here: %s", e.Name, e.Why)
}

// ExistsError reports that a namespace already has a skill with a name.
type ExistsError struct {
	Name     string
	Existing ExistingSkill
}

func (e *ExistsError) Error() string { return fmt.Sprintf("skill %q: %v", e.Name, ErrExists) }

// Is reports whether target is [ErrExists].
func (e *ExistsError) Is(target error) bool { return target == ErrExists }

// ReferencedError reports the references to a skill that prevent an operation.
type ReferencedError struct {
	Skill      string // ID of the skill
	Name       string
	References References
}

func (e *ReferencedError) Error() string {
	return fmt.Sprintf("skill %q is in use: %s", e.Name, e.References.summarize())
}

// Is reports whether target is [store.ErrReferenced].
func (e *ReferencedError) Is(target error) bool { return target == store.ErrReferenced }

// notFound returns the error for a skill that does not exist or is not visible.
func notFound(id string) error { return fmt.Errorf("skill %.100q: %w", id, ErrNotFound) }

func isNotFound(err error) bool { return errors.Is(err, ErrNotFound) }

// isReviewError reports whether err is a [*ReviewError].
func isReviewError(err error) bool {
	_, ok := errors.AsType[*ReviewError](err)
	return ok
}

// hideNotFound replaces [ErrNotFound] for any item of a skill with the error
// for the skill itself, so that callers cannot tell which item is missing.
func hideNotFound(id string, err error) error {
	if isNotFound(err) {
		return notFound(id)
	}
	return err
}
