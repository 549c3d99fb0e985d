package library

import (
	"context"
	"errors"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// checkApprovers returns an error if a version of the skill has code that fewer
// reviewers approved than the namespace requires. If several approvals are
// required, the uploader's own approval does not count.
func (h *skillRecord) checkApprovers(ctx context.Context, a *approvalReader, in Namespace) error {
	rule, err := a.rule(ctx, in)
	if err != nil || !rule.excludesUploader() {
		return err
	}
	for before := int64(0); before != 1; {
		versions, err := a.t.Versions.List(ctx, h.ID, before, store.MaxPage)
		if err != nil || len(versions) == 0 {
			return err
		}
		for _, v := range versions {
			before = v.Number
			if v.Review != Approved || !facts(v).HasCode {
				continue
			}
			n, err := a.count(ctx, rule, h.Namespace, v.CreatedBy, v.Approvers)
			if err != nil {
				return err
			}
			if n < rule.required {
				return invalidf("too few approvers of version %d (%d, the group requires %d); let others approve it, reject it or delete it", v.Number, n, rule.required)
			}
		}
	}
	return nil
}

// addApproval adds the principal's approval to a version. It returns the users
// who approved the version, and Pending if more approvals are required, or if another
// reviewer requested changes. Earlier approvals count only if the user may still
// review. If only some approvals count, the uploader's is refused, even from an
// administrator.
func (h *skillRecord) addApproval(ctx context.Context, t *store.Tables, p account.Principal, v store.Version) (approvers []string, r Review, err error) {
	a := newApprovalReader(t, p)
	rules, err := a.rulesOf(ctx, h.Namespace, h.listings)
	if err != nil {
		return nil, "", err
	}
	if v.CreatedBy == string(p.User) && slices.ContainsFunc(rules, approvalRule.excludesUploader) {
		return nil, "", invalidf("uploader's approval does not count; ask another reviewer")
	}
	earlier, err := a.reviewers(ctx, h.Namespace, v.CreatedBy, v.Approvers)
	if err != nil {
		return nil, "", err
	}
	for _, u := range earlier {
		if u.User != p.User {
			approvers = append(approvers, string(u.User))
		}
	}
	approvers = append(approvers, string(p.User))
	if v.Review == Approved {
		return approvers, Approved, nil
	}
	missing, err := a.missing(ctx, h.Namespace, h.listings, v.CreatedBy, approvers)
	if err != nil {
		return nil, "", err
	}
	blocked, err := isBlocked(ctx, t, v.SkillID, v.Number, string(p.User))
	if err != nil {
		return nil, "", err
	}
	if len(missing) > 0 || blocked {
		return approvers, Pending, nil
	}
	return approvers, Approved, nil
}

// previewApproval reports whether the principal may approve a version, so that the
// approval changes something, and whether the version would be approved then.
func (h *skillRecord) previewApproval(ctx context.Context, t *store.Tables, p account.Principal, v store.Version) (may, suffices bool, err error) {
	if h.Namespace == store.Bundled || v.Review == Approved || h.check(p, account.SkillReview, v.CreatedBy) != nil {
		return false, false, nil
	}
	_, outcome, err := h.addApproval(ctx, t, p, v)
	if errors.Is(err, ErrInvalid) {
		return false, false, nil
	}
	if suffices = outcome == Approved; suffices || err != nil || slices.Contains(v.Approvers, string(p.User)) {
		return suffices, suffices, err
	}
	a := newApprovalReader(t, p)
	rules, err := a.rulesOf(ctx, h.Namespace, h.listings)
	if err == nil {
		may, err = a.counts(ctx, p, rules, pendingVersion(v))
	}
	return may, false, err
}

// newVersions returns versions of a skill as the principal may see them, with the
// number of required approvers.
func (l *Library) newVersions(ctx context.Context, p account.Principal, h *skillRecord, rows ...store.Version) ([]*Version, error) {
	required, err := newApprovalReader(&l.db.Tables, p).required(ctx, h.Namespace, h.listings)
	if err != nil {
		return nil, err
	}
	out := make([]*Version, len(rows))
	for i, v := range rows {
		out[i] = h.newVersionFor(p, v)
		out[i].RequiredApprovers = required
	}
	return out, nil
}

// activePrincipal returns a user with all scopes. It returns an anonymous principal if
// the user does not exist or is disabled.
func activePrincipal(ctx context.Context, t *store.Tables, id string) (account.Principal, error) {
	u, err := t.Users.Get(ctx, id)
	if isNotFound(err) || err == nil && u.Disabled {
		return account.Principal{}, nil
	}
	if err != nil {
		return account.Principal{}, err
	}
	p := account.Principal{User: account.UserID(id), Admin: u.Admin, Scopes: account.AllScopes, Groups: map[account.GroupID]account.Role{}}
	memberships, err := t.Groups.ListMemberships(ctx, id)
	for _, m := range memberships {
		p.Groups[account.GroupID(m.GroupID)] = accountRole(m.Role)
	}
	return p, err
}
