package install

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
)

// ErrNoPins is returned if the key of a new publisher cannot be stored.
var ErrNoPins = errors.New("no directory configured for publisher keys")

// Reason is the reason why a skill cannot be installed. See [SkillError].
type Reason int

// Reasons why a skill cannot be installed.
const (
	Invalid         Reason = iota // the files are not a usable skill
	NameTaken                     // another skill in the plan has the same name
	NotInstalled                  // the directory of this name was not installed by this program
	OtherSource                   // the installed skill comes from another source
	Pinned                        // the installed skill is pinned to a ref
	TagMoved                      // the tag now points to another commit
	Edited                        // the user edited the installed skill
	LockMismatch                  // the installed skill differs from the lockfile to install from
	Missing                       // the source no longer contains the skill
	DigestMismatch                // the files differ from the lockfile
	Busy                          // another process changed the installed skill
	Downgrade                     // the version is older than the highest one seen
	WrongClock                    // the time in the signature is in the future
	KeyExpired                    // the key of the signature has expired
	CounterMismatch               // the counter in the signature differs from the lockfile
)

// SkillError reports why a skill cannot be installed.
type SkillError struct {
	Reason  Reason
	Name    string // directory name; "" for Invalid
	Dir     string // for NameTaken: the skill's directory in its source
	Message string
	Fix     string // for Invalid: how to correct the skill
	// Edits lists the differences from the lockfile, for Edited.
	// SourceUnchanged is set if the source has no other version.
	Edits           []installed.Difference
	SourceUnchanged bool
}

func (e *SkillError) Error() string { return e.Message }

func nameTakenError(name, dir, other string) error {
	return &SkillError{Reason: NameTaken, Name: name, Dir: dir,
		Message: fmt.Sprintf("name %s is also used by the skill in %s", name, cmp.Or(other, "another source"))}
}

func editedError(name string, edits []installed.Difference, sourceUnchanged bool) error {
	return &SkillError{Reason: Edited, Name: name, Edits: edits, SourceUnchanged: sourceUnchanged,
		Message: fmt.Sprintf("you have edited %s (%s); your edits are kept", name, formatEdits(edits))}
}

// SourceError is an error from the network or from a remote source.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// WrapSource returns err as a [*SourceError]. It returns err unchanged if it is
// nil or the location is local.
func WrapSource(at remote.Location, err error) error {
	if err == nil || at.Kind == remote.Local {
		return err
	}
	return &SourceError{err}
}

// formatEdits formats the first differing files as a list.
func formatEdits(edits []installed.Difference) string {
	const most = 3
	text := ""
	for i, e := range edits {
		switch {
		case i == most:
			return text + fmt.Sprintf(" and %d more", len(edits)-most)
		case i > 0:
			text += ", "
		}
		text += cmp.Or(e.Path, string(e.Kind))
	}
	return text
}
