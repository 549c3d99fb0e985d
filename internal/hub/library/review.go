package library

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxTextBytes bounds what people write: a note of a review, a rating. In bytes.
const maxTextBytes = 8 << 10

// Decision is what a reviewer says about the code of a version.
type Decision struct {
	// Number is that of the version, which then has to have the digest; 0 is whichever has it.
	Number int64  `json:"-"`
	Digest string `json:"digest"` // of the version, as the reviewer saw it
	Review Review `json:"review"` // Approved or Rejected; Pending takes a decision back
	Note   string `json:"note"`   // for those who uploaded and use it
}

// ReviewVersion keeps a decision about the files of one digest of a skill. Who uploaded them
// does not review them, unless he is an admin. A number that is not that of the digest is
// [ErrConflict].
func (l *Library) ReviewVersion(ctx context.Context, p account.Principal, id string, d Decision) error {
	if d.Review != Approved && d.Review != Rejected && d.Review != Pending {
		return fmt.Errorf("%w: %.40q is no decision; write approved, rejected or pending", ErrInvalid, string(d.Review))
	}
	if len(d.Note) > maxTextBytes {
		return fmt.Errorf("%w: the note has more than %d bytes", ErrInvalid, maxTextBytes)
	}
	var v store.Version
	may := func(tx *store.Tx, h *skillRecord) (err error) {
		v, err = tx.Versions.GetByDigest(ctx, id, d.Digest)
		if err != nil && !isNotFound(err) {
			return err
		}
		unknown := err
		if err := h.check(p, account.SkillReview, v.CreatedBy); err != nil || unknown == nil {
			return err
		}
		return fmt.Errorf("%w: no version has this digest", ErrConflict)
	}
	return l.updateIf(ctx, p, account.SkillReview, id, may, func(tx *store.Tx, h *skillRecord) (any, error) {
		if d.Number != 0 && d.Number != v.Number {
			return nil, fmt.Errorf("%w: the digest is that of version %d, not of %d", ErrConflict, v.Number, d.Number)
		}
		if err := tx.Versions.SetReview(ctx, id, d.Digest, d.Review, string(p.User), d.Note); err != nil {
			return nil, err
		}
		return reviewDetails{h.Name, v.Number, d}, l.notifyReviewed(ctx, tx, h, v, d)
	})
}

type reviewDetails struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Decision
}

// ListPending returns the versions in namespaces that wait for a review, in the order in
// which they came, and how to ask for more. The principal reviews in each of them. None
// is, for an admin, all there are, and else all of his groups in which he does.
func (l *Library) ListPending(ctx context.Context, p account.Principal, in []Namespace, page store.Page) ([]*Version, string, error) {
	for _, n := range in {
		if err := checkNamespace(p, account.SkillReview, n); err != nil {
			return nil, "", err
		}
	}
	rows, next, err := l.listPending(ctx, p, in, page)
	if err != nil {
		return nil, "", err
	}
	out := make([]*Version, len(rows))
	for i, v := range rows {
		out[i] = newVersion(v, false)
		s, err := l.db.Skills.Get(ctx, v.SkillID)
		if err == nil {
			out[i].Name, out[i].Namespace, out[i].Current = s.Name, s.Namespace, s.Number == v.Number
		} else if !isNotFound(err) {
			return nil, "", err
		}
	}
	return out, next, nil
}

func (l *Library) listPending(ctx context.Context, p account.Principal, in []Namespace, page store.Page) ([]store.Version, string, error) {
	if len(in) > 0 {
		return l.db.Versions.ListPending(ctx, in, page)
	}
	if account.Can(p, account.SkillReview, account.Resource{}) { // the hub's own, which is the admins'
		return l.db.Versions.ListAllPending(ctx, page)
	}
	in, err := namespaces(p, account.SkillReview)
	if err != nil {
		return nil, "", err
	}
	return l.db.Versions.ListPending(ctx, in, page)
}

// CheckRunnable says whether the principal may run code of these bytes: some skill that he may
// run has a version with this digest that was approved. It fails with [ErrNotFound]
// where he reaches none with it, and with a [*ReviewError] where none is approved.
func (l *Library) CheckRunnable(ctx context.Context, p account.Principal, digest string) error {
	versions, err := l.db.Versions.ListByDigest(ctx, digest)
	if err != nil {
		return err
	}
	failed := fmt.Errorf("digest %.80q: %w", digest, ErrNotFound)
	for _, v := range versions {
		h, err := l.authorizeBound(ctx, p, account.SkillRun, v.SkillID)
		if isNotFound(err) {
			continue
		}
		if _, denied := err.(*account.DeniedError); denied {
			failed = err
			continue
		}
		if err != nil {
			return err
		}
		if v.Review == Approved {
			return nil
		}
		failed = &ReviewError{Name: h.Name, Review: v.Review, Note: v.Note}
	}
	return failed
}

// ReviewError says that code does not run, as no reviewer approved it.
type ReviewError struct {
	Name   string
	Review Review
	Note   string // of the reviewer
	Draft  bool   // it is not kept yet, so that nobody can review it
}

func (e *ReviewError) Error() string {
	if e.Draft {
		return fmt.Sprintf("the code of skill %q is that of a draft, which nobody can review", e.Name)
	}
	if e.Review == Rejected {
		return fmt.Sprintf("the code of skill %q was rejected in review: %.200q", e.Name, e.Note)
	}
	return fmt.Sprintf("the code of skill %q waits for a review", e.Name)
}
