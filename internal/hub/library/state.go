package library

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/skillstate"
	"github.com/loadout-dev/loadout/internal/store"
)

// factsOf returns the data from which the state of a version is derived.
func factsOf(number int64, r Review, changesRequested bool, data json.RawMessage) skillstate.Version {
	d := skillstate.State(r)
	if r == Rejected && changesRequested {
		d = skillstate.ChangesRequested
	}
	m := readMeta(data)
	return skillstate.Version{Number: number, Decision: d, HasCode: m.hasCode()}
}

func facts(v store.Version) skillstate.Version {
	out := factsOf(v.Number, v.Review, v.ChangesRequested, v.Meta)
	out.HasCode = out.HasCode || v.NeedsApproval
	return out
}

// isCleared reports whether a version may become the one that all users get.
func isCleared(v store.Version) bool { return facts(v).IsCleared() }

// mayBeCurrent reports whether a version of s may become the current one.
func mayBeCurrent(s store.Skill, v store.Version) bool {
	return !(v.NeedsApproval && v.Review == Pending) && facts(v).MayReplace(factsOf(s.Number, s.Review, false, s.Meta))
}

// isWithheld reports whether the current version of s is withheld from most users,
// because a reviewer rejected it and no version is cleared.
func isWithheld(s store.Skill) bool { return s.Review == Rejected }

// checkVersion returns a [*ReviewError] if the principal, who may read the skill,
// must not access its version v. Everybody may access a version that is cleared,
// and the current version unless it was rejected. All other versions are only for
// their uploader and for the reviewers of the skill, regardless of the scopes of
// their tokens. Each function that returns the contents of a version must call
// checkVersion or [isWithheld].
func (h *skillRecord) checkVersion(p account.Principal, v store.Version) error {
	released := isCleared(v) || v.Number == h.Number && v.Review == Pending
	if released || h.isAuthorOrReviewer(p, v) {
		return nil
	}
	return h.newReviewError(p, v)
}

// isAuthorOrReviewer reports whether the user uploaded a version or may review it.
// It ignores the scopes of the principal's token.
func (h *skillRecord) isAuthorOrReviewer(p account.Principal, v store.Version) bool {
	if !p.Anonymous() && v.CreatedBy == string(p.User) {
		return true
	}
	p.Scopes = account.AllScopes
	return h.check(p, account.SkillReview, v.CreatedBy) == nil
}

// newReviewError returns the error for a version. It includes the reviewer's note
// only if the principal is the author or a reviewer.
func (h *skillRecord) newReviewError(p account.Principal, v store.Version) *ReviewError {
	e := &ReviewError{Name: h.Name, Review: v.Review}
	if h.isAuthorOrReviewer(p, v) {
		e.Note = v.Note
	}
	return e
}

// CheckVersion returns a [*ReviewError] if the principal, who may use the skill,
// must not access the version with the given digest, and [ErrNotFound] if there is
// no such version. If digest is "", it checks the current version.
func (l *Library) CheckVersion(ctx context.Context, p account.Principal, s store.Skill, digest string) error {
	if current := digest == "" || digest == s.Digest; current && !isWithheld(s) {
		return nil
	}
	h := &skillRecord{Skill: s} // reviewing requires rights in the skill's own namespace
	_, err := l.getVersionFor(ctx, p, h, digest)
	return err
}

// getVersionFor returns the version with the given digest, or the current one if
// digest is "". It returns a [*ReviewError] if the principal must not access it.
func (l *Library) getVersionFor(ctx context.Context, p account.Principal, h *skillRecord, digest string) (store.Version, error) {
	if digest == "" {
		digest = h.Digest
	}
	v, err := l.db.Versions.GetByDigest(ctx, h.ID, digest)
	if isNotFound(err) {
		err = fmt.Errorf("skill %.100q: version with digest %.80q: %w", h.Name, digest, ErrNotFound)
	}
	if err == nil {
		err = h.checkVersion(p, v)
	}
	return v, err
}

// applyReview makes a version current when the given review clears it. If the
// current version is no longer cleared, applyReview reverts to another cleared one,
// if any. v and after are the version before and after the review. applyReview returns
// the number of the version that became current, or 0.
func (l *Library) applyReview(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v, after store.Version) (current int64, err error) {
	was, is := isCleared(v), isCleared(after)
	shown := factsOf(h.Number, h.Review, false, h.Meta)
	switch {
	case is && !was && (v.Number > h.Number || v.Number < h.Number && !shown.IsCleared()):
		if err := l.setCurrent(ctx, tx, v); err != nil {
			return 0, err
		}
		return v.Number, l.notifyUsers(ctx, tx, p, h, v)
	case !is && v.Number == h.Number:
		other, err := findCleared(ctx, tx, v)
		if err != nil || other == nil {
			return 0, err
		}
		return other.Number, l.setCurrent(ctx, tx, *other)
	}
	return 0, nil
}

// findCleared returns the newest cleared version of the same skill before v, or
// else the newest cleared one after v, or nil. A cleared version after v that is
// not current was withdrawn before.
func findCleared(ctx context.Context, tx *store.Tx, v store.Version) (*store.Version, error) {
	var newer *store.Version
	for before := int64(0); ; {
		rows, err := tx.Versions.List(ctx, v.SkillID, before, store.MaxPage)
		if err != nil || len(rows) == 0 {
			return newer, err
		}
		for i, r := range rows {
			before = r.Number
			switch cleared := r.ID != v.ID && isCleared(r); {
			case cleared && r.Number < v.Number:
				return &rows[i], nil
			case cleared && newer == nil:
				newer = &rows[i]
			}
		}
		if before == 1 {
			return newer, nil
		}
	}
}
