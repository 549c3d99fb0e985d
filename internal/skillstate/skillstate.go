// Package skillstate defines the states in the life of a version of a skill.
// The hub, its page and the command use it, so that a state means the same
// everywhere: a hub derives it from the decisions of reviewers, and a machine
// from the approvals of its user. Start reading at [Version].
package skillstate

// State is the stage of a skill version in its life cycle.
type State string

// States of a version.
const (
	Pending  State = "pending"  // its code is awaiting review
	Rejected State = "rejected" // a reviewer rejected it
	// ChangesRequested is the state of a version whose reviewer expects another
	// version with changes.
	ChangesRequested State = "changes-requested"
	Approved         State = "approved"   // cleared for use, and current
	Superseded       State = "superseded" // cleared for use, but a newer version is current
	Withdrawn        State = "withdrawn"  // cleared for use, but the skill was reverted to an older version
)

// Version holds the facts that determine the state of a version.
type Version struct {
	// Number is the position in the history of the skill. Newer versions have
	// higher ones. 0 means that there is no version.
	Number int64
	// Decision is Approved, Rejected or ChangesRequested; Pending or "" means
	// that nobody has decided.
	Decision State
	HasCode  bool // whether it has scripts, servers or a provider, which need a review
}

// IsCleared reports whether everyone may use the version: it was approved, or it
// has no code to review and nobody rejected it.
func (v Version) IsCleared() bool {
	return v.Decision == Approved || v.isUndecided() && !v.HasCode
}

// IsWaiting reports whether the version has code and awaits a reviewer's
// decision.
func (v Version) IsWaiting() bool { return v.isUndecided() && v.HasCode }

func (v Version) isUndecided() bool { return v.Decision == "" || v.Decision == Pending }

// State returns the state of the version. current is the number of the version
// that everyone uses.
func (v Version) State(current int64) State {
	switch {
	case v.IsWaiting():
		return Pending
	case !v.IsCleared():
		return v.Decision
	case v.Number < current:
		return Superseded
	case v.Number > current:
		return Withdrawn
	}
	return Approved
}

// MayReplace reports whether the version may become the current one. A version
// that is awaiting review may do so only while the current version is also
// awaiting review, as in a new skill.
func (v Version) MayReplace(current Version) bool {
	if current.Number == 0 || current.Number == v.Number || v.IsCleared() {
		return true
	}
	return v.IsWaiting() && current.IsWaiting()
}
