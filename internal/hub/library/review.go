package library

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxTextBytes is the maximum size of a review note or rating text, in bytes.
const maxTextBytes = 8 << 10

// Decision is a reviewer's decision about the code of a version.
type Decision struct {
	// Number is the number of the version with Digest; 0 means any version.
	Number int64  `json:"-"`
	Digest string `json:"digest"` // digest of the files that the reviewer saw
	Review Review `json:"review"` // Pending revokes a decision
	Note   string `json:"note"`   // for the author and other reviewers; ChangesRequested requires one
}

// ReviewVersion stores a review of the version with the decision's digest. A
// version is approved once it has as many approvals as the groups that own or list
// the skill require, and no other reviewer's open request for changes; until then,
// it remains pending. Any other decision discards the approvals. An approved version
// becomes current if it is newer than the current one. If the current version loses
// its approval, the newest approved one before it becomes current. Only
// administrators may review their own uploads, and only if the approval of any one
// reviewer suffices. ReviewVersion returns [ErrConflict] if the version with the
// given number has another digest.
func (l *Library) ReviewVersion(ctx context.Context, p account.Principal, id string, d Decision) error {
	switch d.Review {
	case Approved, Rejected, Pending:
	case ChangesRequested:
		if strings.TrimSpace(d.Note) == "" {
			return fmt.Errorf("%w: missing note (say what must change)", ErrInvalid)
		}
	default:
		return fmt.Errorf("%w: unknown review %.40q (want approved, changes-requested, rejected or pending)", ErrInvalid, string(d.Review))
	}
	if len(d.Note) > maxTextBytes {
		return fmt.Errorf("%w: note too long (%d bytes, limit %d)", ErrInvalid, len(d.Note), maxTextBytes)
	}
	var v store.Version
	may := func(tx *store.Tx, h *skillRecord) (err error) {
		if h.Namespace == store.Bundled {
			return fmt.Errorf("%w: skill %q ships with the hub and is always approved", ErrInvalid, h.Name)
		}
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
			return nil, fmt.Errorf("%w: version mismatch: digest belongs to version %d, not %d", ErrConflict, v.Number, d.Number)
		}
		closed, err := recordRequest(ctx, tx, p, v, d)
		if err != nil {
			return nil, err
		}
		outcome, approvers := d.Review, []string(nil)
		if d.Review == Approved {
			if approvers, outcome, err = h.addApproval(ctx, &tx.Tables, p, v); err != nil {
				return nil, err
			}
		}
		if err := tx.Versions.SetReview(ctx, id, d.Digest, outcome, string(p.User), d.Note, approvers...); err != nil {
			return nil, err
		}
		after := v
		after.Review, after.ChangesRequested = outcome, outcome == ChangesRequested
		if after.ChangesRequested {
			after.Review = Rejected
		}
		current, err := l.applyReview(ctx, tx, p, h, v, after)
		if err == nil && closed {
			current, err = l.releaseOthers(ctx, tx, p, h, v, current)
		}
		if err != nil {
			return nil, err
		}
		details := reviewDetails{h.Name, v.Number, d, len(approvers), outcome, current}
		switch {
		case outcome == Pending && d.Review != Approved, isRepeated(p, v, after, d):
			return details, nil
		case outcome == Pending:
			return details, l.notifyApproval(ctx, tx, p, h, v, d)
		}
		return details, l.notifyReviewed(ctx, tx, p, h, v, d)
	})
}

// isRepeated reports whether the same reviewer has already made the decision, with
// the same note. An approval without a note also repeats one with a note. after is
// the version after the decision.
func isRepeated(p account.Principal, v, after store.Version, d Decision) bool {
	user := string(p.User)
	same := v.Review == after.Review && v.ChangesRequested == after.ChangesRequested
	if d.Review == Approved {
		return same && slices.Contains(v.Approvers, user) && (d.Note == "" || d.Note == v.Note)
	}
	return same && v.Reviewer == user && d.Note == v.Note
}

// reviewDetails holds the details of the audit record for a review.
type reviewDetails struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Decision
	Approvals int    `json:"approvals,omitempty"` // number of approvals, including this one
	Outcome   Review `json:"outcome"`             // Pending if more approvals are required
	Current   int64  `json:"current,omitempty"`   // number of the version that became current
}

// releaseOthers publishes later versions that a closed request for changes blocked.
// It returns the number of the version that is current afterwards, if it changed.
func (l *Library) releaseOthers(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, current int64) (int64, error) {
	h, err := l.getSkill(ctx, &tx.Tables, h.ID)
	if err != nil {
		return 0, err
	}
	if n, err := l.releaseVersions(ctx, tx, p, h, v.Number+1); err != nil || n != 0 {
		return n, err
	}
	return current, nil
}

// ListPending returns the versions in the given namespaces that need a decision by
// the principal, oldest first, and the cursor of the next page. These are the
// pending versions that have code, or that request allowed tools or a model; see
// [store.Versions.ListPending]. It omits versions that the principal has approved or
// must not approve, unless too few users can approve and the principal may change the
// rule. The principal must be allowed to review in each namespace. If in
// is empty, ListPending uses all namespaces in which the principal may review.
func (l *Library) ListPending(ctx context.Context, p account.Principal, in []Namespace, page store.Page) ([]*Version, string, error) {
	for _, n := range in {
		if err := checkNamespace(p, account.SkillReview, n); err != nil {
			return nil, "", err
		}
	}
	list, err := l.pendingList(p, in)
	if err != nil {
		return nil, "", err
	}
	out, approvals := []*Version{}, newApprovalReader(&l.db.Tables, p)
	for size := page.Size(); ; {
		rows, next, err := list(ctx, page)
		if err != nil {
			return nil, "", err
		}
		for i, v := range rows {
			one, err := l.undecidedVersion(ctx, p, approvals, v)
			if err != nil {
				return nil, "", err
			}
			if one == nil {
				continue
			}
			if out = append(out, one); len(out) < size {
				continue
			}
			if i+1 < len(rows) {
				next = v.PendingAfter()
			}
			return out, next, nil
		}
		if page.After = next; next == "" {
			return out, "", nil
		}
	}
}

// pendingList returns the function that lists the versions awaiting review in the
// given namespaces. If none are given, it lists those in all namespaces in which
// the principal may review.
func (l *Library) pendingList(p account.Principal, in []Namespace) (func(context.Context, store.Page) ([]store.Version, string, error), error) {
	if len(in) == 0 && account.Can(p, account.SkillReview, account.Resource{}) { // administrators
		return l.db.Versions.ListAllPending, nil
	}
	if len(in) == 0 {
		var err error
		if in, err = namespaces(p, account.SkillReview); err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context, page store.Page) ([]store.Version, string, error) {
		return l.db.Versions.ListPending(ctx, in, page)
	}, nil
}

// undecidedVersion returns a pending version if it needs a decision by the principal,
// and nil otherwise.
func (l *Library) undecidedVersion(ctx context.Context, p account.Principal, a *approvalReader, v store.Version) (*Version, error) {
	pending := pendingVersion(v)
	if !awaitsReview(pending) {
		return nil, nil
	}
	h, err := l.getSkill(ctx, &l.db.Tables, v.SkillID)
	if isNotFound(err) { // just deleted
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	if needed, err := a.needsDecision(ctx, p, h.Namespace, h.listings, pending); err != nil || !needed {
		return nil, err
	}
	all, err := l.newVersions(ctx, p, h, v)
	if err != nil {
		return nil, err
	}
	out := all[0]
	out.Name, out.Namespace = h.Name, h.Namespace
	return out, nil
}

func pendingVersion(v store.Version) store.PendingVersion {
	return store.PendingVersion{SkillID: v.SkillID, Number: v.Number, CreatedBy: v.CreatedBy, Approvers: v.Approvers, NeedsApproval: v.NeedsApproval, Meta: v.Meta}
}

// awaitsReview reports whether a version without a decision needs a review.
func awaitsReview(v store.PendingVersion) bool {
	m := readMeta(v.Meta)
	return m.needsReview() || v.NeedsApproval
}

// CheckRunnable returns nil if a version with the given digest is approved and the
// principal may run the code of its skill. It returns [ErrNotFound] if no visible
// skill has a version with the digest, and a [*ReviewError] if no such version is
// approved.
func (l *Library) CheckRunnable(ctx context.Context, p account.Principal, digest string) error {
	versions, err := l.db.Versions.ListByDigest(ctx, digest)
	if err != nil {
		return err
	}
	failed := fmt.Errorf("version with digest %.80q: %w", digest, ErrNotFound)
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
		failed = h.newReviewError(p, v)
	}
	return failed
}

// ReviewError reports that code must not run, or that a version is withheld,
// because it is not approved.
type ReviewError struct {
	Name   string
	Review Review
	Note   string // reviewer's note; only for the author and reviewers
	Draft  bool   // whether the code is an unsaved draft, which cannot be reviewed
}

func (e *ReviewError) Error() string {
	if e.Draft {
		return fmt.Sprintf("code of skill %q is an unsaved draft, which cannot be reviewed", e.Name)
	}
	what := fmt.Sprintf("code of skill %q ", e.Name)
	switch {
	case e.Review == Rejected && e.Note != "":
		return what + fmt.Sprintf("was rejected in review: %.200q", e.Note)
	case e.Review == Rejected:
		return what + "was rejected in review"
	}
	return what + "is not reviewed yet"
}
