package install

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/loadout-dev/loadout/internal/installed"
	"github.com/loadout-dev/loadout/internal/remote"
)

// ErrNoPins is returned if the key of a new publisher cannot be stored.
var ErrNoPins = errors.New("no directory to store the keys of publishers")

// Reason is the reason of a [SkillError].
type Reason int

// The reasons why a skill cannot be installed.
const (
	Invalid        Reason = iota // its files are not a usable skill
	NameTaken                    // another skill of the plan has the name
	NotInstalled                 // a directory of this name was not installed by this program
	OtherSource                  // the installed skill comes from another source
	Pinned                       // the installed skill is pinned to a ref
	TagMoved                     // the tag names another commit now
	Edited                       // the user edited the installed skill
	LockMismatch                 // the installed skill differs from the lockfile to install from
	Missing                      // the source does not have the skill any more
	DigestMismatch               // the files differ from the lockfile
	Busy                         // another process changed the installed skill
)

// SkillError explains why one skill cannot be installed.
type SkillError struct {
	Reason  Reason
	Name    string // name of its directory; "" with Invalid
	Dir     string // directory of the skill at its source, with NameTaken
	Message string
	Fix     string // correction of the skill, with Invalid
	// Edits are the differences from the lockfile, with Edited. SourceUnchanged
	// says that the source has no other version.
	Edits           []installed.Difference
	SourceUnchanged bool
}

func (e *SkillError) Error() string { return e.Message }

func nameTaken(name, dir, other string) error {
	return &SkillError{Reason: NameTaken, Name: name, Dir: dir,
		Message: fmt.Sprintf("name %s is also used by the skill in %s", name, cmp.Or(other, "another source"))}
}

func edited(name string, edits []installed.Difference, sourceUnchanged bool) error {
	return &SkillError{Reason: Edited, Name: name, Edits: edits, SourceUnchanged: sourceUnchanged,
		Message: fmt.Sprintf("you have edited %s (%s); your edits are kept", name, FormatEdits(edits))}
}

// SourceError is an error of a source on another machine, or of the network.
type SourceError struct{ Err error }

func (e *SourceError) Error() string { return e.Err.Error() }
func (e *SourceError) Unwrap() error { return e.Err }

// WrapSource returns err as a [*SourceError], unless it is nil or the location
// is on this machine.
func WrapSource(at remote.Location, err error) error {
	if err == nil || at.Kind == remote.Local {
		return err
	}
	return &SourceError{err}
}

// FormatEdits names the first files that differ.
func FormatEdits(edits []installed.Difference) string {
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
