package library

import (
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/skill"
)

// SkipCode is the kind of reason why an import skips a skill. The other codes are
// those of [DowngradeReason].
type SkipCode string

const (
	SkipUnchanged        SkipCode = "unchanged"
	SkipPending          SkipCode = "pending" // a version with these files is awaiting review
	SkipExists           SkipCode = "exists"  // a skill with this name exists
	SkipTaken            SkipCode = "taken"   // a skill that the user may neither see nor change has the name
	SkipDuplicate        SkipCode = "duplicate"
	SkipNotFound         SkipCode = "not_found"
	SkipChangesRequested SkipCode = "changes_requested"
	SkipRejected         SkipCode = "rejected"
	SkipWithdrawn        SkipCode = "withdrawn"
	SkipPinned           SkipCode = "pinned"
	SkipUploaded         SkipCode = "uploaded" // not imported, so not updated
	SkipTooMany          SkipCode = "too_many"
	SkipForbidden        SkipCode = "forbidden"
	SkipQuota            SkipCode = "quota"
	SkipBadName          SkipCode = "bad_name"
	SkipBadSkill         SkipCode = "bad_skill"   // its SKILL.md does not load
	SkipBadPackage       SkipCode = "bad_package" // its files are not allowed
	SkipSource           SkipCode = "source"      // the source failed
	SkipInvalid          SkipCode = "invalid"
)

// skipError is a reason to skip a skill that is not the error of an operation.
type skipError struct {
	code SkipCode
	text string
}

func (e *skipError) Error() string { return e.text }

func skipf(code SkipCode, format string, args ...any) error {
	return &skipError{code, fmt.Sprintf(format, args...)}
}

var (
	// errUnchanged means that a skill has the same files as its source.
	errUnchanged = skipf(SkipUnchanged, "already up to date")
	// errPending means that a version with the files of the source is awaiting review.
	errPending = skipf(SkipPending, "awaiting review")
	// errNotSelected means that an import must not change an existing skill.
	errNotSelected = skipf(SkipExists, "a skill with this name exists; select it to overwrite it")
	// errOutOfReach means that a skill that the user may neither see nor change has the name.
	errOutOfReach = skipf(SkipTaken, "the name is taken; rename the skill, or import it into another namespace")
)

// unchangedError explains why importing the files of version v, which has the
// given state, changes nothing.
func unchangedError(v store.Version, state skillstate.State, pending bool) error {
	switch {
	case state == skillstate.ChangesRequested:
		return skipf(SkipChangesRequested, "version %d has these files, and a reviewer requested changes", v.Number)
	case state == skillstate.Rejected:
		return skipf(SkipRejected, "version %d has these files and was rejected", v.Number)
	case state == skillstate.Withdrawn:
		return skipf(SkipWithdrawn, "version %d has these files and was withdrawn; make it current to use it again", v.Number)
	case pending:
		return errPending
	}
	return errUnchanged
}

// skipCode returns the code for an error that affects only one skill, so that an
// import can continue with the others, and "" for other errors.
func skipCode(err error) SkipCode {
	if e, ok := errors.AsType[*skipError](err); ok {
		return e.code
	}
	if e, ok := errors.AsType[*DowngradeError](err); ok {
		return SkipCode(e.Reason)
	}
	switch {
	case isA[*skill.RefusedError](err), errors.Is(err, skill.ErrTooLarge):
		return SkipBadPackage
	case isA[*BrokenError](err):
		return SkipBadSkill
	case isA[*NameError](err):
		return SkipBadName
	case isA[*remote.DigestError](err):
		return SkipSource
	case isNotFound(err):
		return SkipNotFound
	case account.IsDenied(err):
		return SkipForbidden
	case errors.Is(err, ErrExists):
		return SkipExists
	case errors.Is(err, ErrInvalid):
		return SkipInvalid
	}
	return ""
}

// isA reports whether err is or wraps an error of type E.
func isA[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

// isSkillError reports whether err affects only one skill, so that the import can
// continue with the others.
func isSkillError(err error) bool { return skipCode(err) != "" }

// skip records a skill that was not imported.
func (i *ImportResult) skip(id, name, dir string, why error) {
	i.skipChange(ImportChange{ID: id, Name: name, Dir: dir}, why)
}

// skipChange records a failed change as skipped.
func (i *ImportResult) skipChange(c ImportChange, err error) {
	if c.Name, c.Reason, c.ReasonCode = printable.OneLine(c.Name), err.Error(), skipCode(err); !c.Pending {
		c.Number = 0
	}
	if isA[*quota.ExceededError](err) {
		c.ReasonCode = SkipQuota
	}
	if e, ok := errors.AsType[*DowngradeError](err); ok {
		c.Code = e.Reason
	}
	i.Skipped = append(i.Skipped, c)
}
