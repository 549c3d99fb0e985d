package library

import (
	"context"
	"encoding/json"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// State is the position of a version in its life. It follows from the review of
// the version and from the number of the current version.
type State string

// States of a version.
const (
	StatePending  State = "pending"  // its code waits for a review
	StateRejected State = "rejected" // a reviewer rejected it
	// StateChangesRequested is the state of a version whose reviewer expects
	// another version with the changes of the note.
	StateChangesRequested State = "changes-requested"
	StateApproved         State = "approved"   // cleared for use, and current
	StateSuperseded       State = "superseded" // cleared for use, but a newer version is current
	StateWithdrawn        State = "withdrawn"  // cleared for use, but the skill was reverted to an older version
)

// versionState returns the state of a version of s.
func versionState(s store.Skill, v store.Version) State {
	switch {
	case v.Review == Rejected && v.ChangesRequested:
		return StateChangesRequested
	case v.Review == Rejected:
		return StateRejected
	case !isCleared(v.Review, v.Meta):
		return StatePending
	case v.Number < s.Number:
		return StateSuperseded
	case v.Number > s.Number:
		return StateWithdrawn
	}
	return StateApproved
}

// isCleared reports whether a version with the given review and metadata may be
// the one that everybody gets: a reviewer approved it, or it has no code to review
// and nobody rejected it.
func isCleared(r Review, data json.RawMessage) bool {
	if r == Pending {
		m := readMeta(data)
		return !m.hasCode()
	}
	return r == Approved
}

// mayBeCurrent reports whether a version of s may become the current one. A
// version that is not cleared may do so only while the current one is not cleared
// either, as in a new skill.
func mayBeCurrent(s store.Skill, v store.Version) bool {
	return s.Number == 0 || s.Number == v.Number || isCleared(v.Review, v.Meta) || !isCleared(s.Review, s.Meta)
}

// applyReview makes a version current when the given review clears it. It reverts
// to the newest older version that is cleared, if any, when the current version is
// no longer cleared. v is the version before the review.
func (l *Library) applyReview(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, r Review) error {
	was, is := isCleared(v.Review, v.Meta), isCleared(r, v.Meta)
	switch {
	case is && !was && (v.Number > h.Number || v.Number < h.Number && !isCleared(h.Review, h.Meta)):
		if err := l.setCurrent(ctx, tx, v); err != nil {
			return err
		}
		return l.notifyUsers(ctx, tx, p, h, v)
	case !is && v.Number == h.Number:
		older, err := newestCleared(ctx, tx, v)
		if err != nil || older == nil {
			return err
		}
		return l.setCurrent(ctx, tx, *older)
	}
	return nil
}

// newestCleared returns the newest cleared version of the same skill that is older
// than v, or nil if there is none.
func newestCleared(ctx context.Context, tx *store.Tx, v store.Version) (*store.Version, error) {
	for before := v.Number; before > 1; {
		rows, err := tx.Versions.List(ctx, v.SkillID, before, store.MaxPage)
		if err != nil || len(rows) == 0 {
			return nil, err
		}
		for i, r := range rows {
			if isCleared(r.Review, r.Meta) {
				return &rows[i], nil
			}
			before = r.Number
		}
	}
	return nil, nil
}

// checkReleased returns a [*ReviewError] if a version waits for its review while
// another version is current, and the principal neither uploaded it nor may review
// it.
func (h *skillRecord) checkReleased(p account.Principal, v store.Version) error {
	waits := v.Number > h.Number && v.Review == Pending && !mayBeCurrent(h.Skill, v)
	if !waits || v.CreatedBy == string(p.User) || h.check(p, account.SkillReview, v.CreatedBy) == nil {
		return nil
	}
	return &ReviewError{Name: h.Name, Review: v.Review, Note: v.Note}
}
