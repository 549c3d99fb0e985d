package library

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// ChangeRequest is a reviewer's open request to change a version. It blocks the
// version and later ones until the reviewer approves one of them, or an owner of the
// group dismisses the request.
type ChangeRequest struct {
	ID       string    `json:"id"`
	Version  int64     `json:"version"`
	Reviewer string    `json:"reviewer" doc:"ID of the user"`
	Note     string    `json:"note"`
	Created  time.Time `json:"created"`
	Dismiss  bool      `json:"canDismiss" doc:"Whether you may dismiss it"`
}

// openRequests returns the open requests that block a version.
func (h *skillRecord) openRequests(ctx context.Context, t *store.Tables, p account.Principal, v store.Version) ([]ChangeRequest, error) {
	rows, err := t.ChangeRequests.ListOpen(ctx, v.SkillID, v.Number)
	if err != nil || len(rows) == 0 {
		return []ChangeRequest{}, err
	}
	versions, err := t.Versions.List(ctx, h.ID, 0, store.MaxPage)
	if err != nil {
		return nil, err
	}
	out := make([]ChangeRequest, len(rows))
	for i, r := range rows {
		denied := h.checkDismiss(ctx, t, p, r, versions)
		if denied != nil && !account.IsDenied(denied) && !isNotFound(denied) {
			return nil, denied
		}
		out[i] = ChangeRequest{r.ID, r.Number, r.Reviewer, untrusted.New(r.Note).ForPage(), r.Created, denied == nil && r.Reviewer != string(p.User)}
	}
	return out, nil
}

// isBlocked reports whether a reviewer other than the given one requested changes to
// the version with the given number, or to an earlier one.
func isBlocked(ctx context.Context, t *store.Tables, skillID string, number int64, except string) (bool, error) {
	open, err := t.ChangeRequests.ListOpen(ctx, skillID, number)
	return slices.ContainsFunc(open, func(r store.ChangeRequest) bool { return r.Reviewer != except }), err
}

// checkDismiss returns an error if the principal must not dismiss a request. If the
// principal uploaded its version, or a pending version that it blocks, only an
// administrator may dismiss it. versions are the newest ones of the skill.
func (h *skillRecord) checkDismiss(ctx context.Context, t *store.Tables, p account.Principal, r store.ChangeRequest, versions []store.Version) error {
	author := h.CreatedBy
	v, err := t.Versions.Get(ctx, h.ID, r.Number)
	if err == nil {
		author = v.CreatedBy
	} else if !isNotFound(err) {
		return err
	}
	if err := h.check(p, account.SkillDismiss, author); err != nil {
		return err
	}
	for _, v := range versions {
		if v.Number < r.Number || !facts(v).IsWaiting() {
			continue
		}
		if err := h.check(p, account.SkillDismiss, v.CreatedBy); err != nil {
			return err
		}
	}
	return nil
}

// recordRequest stores or closes the reviewer's request for changes, depending on a
// decision about a version. It reports whether it closed a request.
func recordRequest(ctx context.Context, tx *store.Tx, p account.Principal, v store.Version, d Decision) (closed bool, err error) {
	switch d.Review {
	case ChangesRequested:
		_, err := tx.ChangeRequests.Add(ctx, store.ChangeRequest{SkillID: v.SkillID, Number: v.Number, Reviewer: string(p.User), Note: d.Note})
		return false, err
	case Approved, Pending, Rejected:
		n, err := tx.ChangeRequests.CloseBy(ctx, v.SkillID, string(p.User), v.Number)
		return n > 0, err
	}
	return false, nil
}

// DismissChanges closes a request for changes of another reviewer. The principal must
// be an owner of the group who uploaded neither the version nor a pending one that the
// request blocks, or an administrator. Versions that only the request blocked are
// published.
func (l *Library) DismissChanges(ctx context.Context, p account.Principal, id, request, reason string) error {
	if reason = strings.TrimSpace(reason); reason == "" {
		return invalidf("missing reason (say why the changes are not needed)")
	}
	if len(reason) > maxTextBytes {
		return invalidf("reason too long (%d bytes, limit %d)", len(reason), maxTextBytes)
	}
	var r store.ChangeRequest
	may := func(tx *store.Tx, h *skillRecord) (err error) {
		r, err = tx.ChangeRequests.Get(ctx, request)
		if err == nil && (r.SkillID != id || !r.Closed.IsZero()) {
			err = fmt.Errorf("open change request %.80q: %w", request, ErrNotFound)
		}
		unknown := err
		if unknown == nil {
			versions, err := tx.Versions.List(ctx, h.ID, 0, store.MaxPage)
			if err != nil {
				return err
			}
			return h.checkDismiss(ctx, &tx.Tables, p, r, versions)
		}
		if err := h.check(p, account.SkillDismiss, h.CreatedBy); err != nil {
			return err
		}
		return fmt.Errorf("%w: request is closed or does not exist", ErrConflict)
	}
	return l.updateIf(ctx, p, account.SkillDismiss, id, may, func(tx *store.Tx, h *skillRecord) (any, error) {
		if err := tx.ChangeRequests.Close(ctx, r.ID); err != nil {
			return nil, err
		}
		v, err := tx.Versions.Get(ctx, id, r.Number)
		if err == nil && v.ChangesRequested && v.Reviewer == r.Reviewer {
			err = tx.Versions.SetReview(ctx, id, v.Digest, Pending, string(p.User), "", v.Approvers...)
		}
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		current, err := l.releaseVersions(ctx, tx, p, h, r.Number)
		if err != nil {
			return nil, err
		}
		return dismissDetails{h.Name, r.Number, r.Reviewer, reason, current}, l.notifyDismissed(ctx, tx, p, h, v, r, reason)
	})
}

// dismissDetails holds the details of the audit record for DismissChanges.
type dismissDetails struct {
	Name     string `json:"name"`
	Version  int64  `json:"version"`
	Reviewer string `json:"reviewer"`
	Note     string `json:"note"`              // reason
	Current  int64  `json:"current,omitempty"` // number of the version that became current
}

// releaseVersions publishes the versions with at least the given number that are no
// longer blocked. It returns the number of the version that became current, or 0.
func (l *Library) releaseVersions(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, from int64) (current int64, err error) {
	rows, err := tx.Versions.List(ctx, h.ID, 0, store.MaxPage)
	if err != nil {
		return 0, err
	}
	slices.Reverse(rows)
	for _, v := range rows {
		if v.Number < from || v.Review != Pending {
			continue
		}
		blocked, err := isBlocked(ctx, &tx.Tables, v.SkillID, v.Number, "")
		if err != nil {
			return 0, err
		}
		if blocked {
			continue
		}
		n, err := l.releaseVersion(ctx, tx, p, h, v)
		if err != nil {
			return 0, err
		}
		if n != 0 {
			current = n
			if h, err = l.getSkill(ctx, &tx.Tables, h.ID); err != nil {
				return 0, err
			}
		}
	}
	return current, nil
}

// releaseVersion approves a version that has enough approvals by users who may still
// review. It publishes a version that needs no approval.
func (l *Library) releaseVersion(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version) (current int64, err error) {
	after := v
	if after.NeedsApproval = false; v.NeedsApproval {
		if err := tx.Versions.SetNeedsApproval(ctx, v.ID, false); err != nil {
			return 0, err
		}
	}
	if len(v.Approvers) > 0 {
		a := newApprovalReader(&tx.Tables, p)
		reviewers, err := a.reviewers(ctx, h.Namespace, v.CreatedBy, v.Approvers)
		if err != nil {
			return 0, err
		}
		missing, err := a.missing(ctx, h.Namespace, h.listings, v.CreatedBy, v.Approvers)
		if err != nil {
			return 0, err
		}
		if n := len(reviewers); n > 0 && len(missing) == 0 {
			ids := make([]string, n)
			for i, u := range reviewers {
				ids[i] = string(u.User)
			}
			after.Review = Approved
			if err := tx.Versions.SetReview(ctx, h.ID, v.Digest, Approved, ids[n-1], v.Note, ids...); err != nil {
				return 0, err
			}
		}
	}
	return l.applyReview(ctx, tx, p, h, v, after)
}
