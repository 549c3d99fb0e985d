package library

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// requiredApprovers returns how many reviewers must approve a version of the skill:
// the highest number required by any group that owns or lists the skill.
func (h *skillRecord) requiredApprovers(ctx context.Context, t *store.Tables) (int, error) {
	return requiredApprovers(ctx, t, h.Namespace, h.listings, map[Namespace]int{})
}

// requiredApprovers is like [skillRecord.requiredApprovers] for a skill that home owns.
// It adds the number that each namespace requires to known.
func requiredApprovers(ctx context.Context, t *store.Tables, home Namespace, listings []Namespace, known map[Namespace]int) (int, error) {
	most := 1
	for _, n := range append([]Namespace{home}, listings...) {
		if known[n] == 0 {
			required, err := requiredApproversIn(ctx, t, n)
			if err != nil {
				return 0, err
			}
			known[n] = required
		}
		most = max(most, known[n])
	}
	return most, nil
}

// requiredApproversIn returns how many reviewers must approve a version of a skill in a
// namespace.
func requiredApproversIn(ctx context.Context, t *store.Tables, n Namespace) (int, error) {
	if n.Group() == "" {
		return 1, nil
	}
	g, err := t.Groups.Get(ctx, n.Group())
	if isNotFound(err) { // just deleted
		return 1, nil
	}
	return int(g.RequiredApprovers), err
}

// needsDecision reports whether a pending version of a skill needs a decision by the
// principal, which may review it: an approval would count, and the principal has not
// already given one that waits for those of others.
func needsDecision(p account.Principal, createdBy string, approvers []string, required int) bool {
	user := string(p.User)
	own := required > 1 && createdBy == user
	waits := len(approvers) < required && slices.Contains(approvers, user)
	return !own && !waits
}

// checkApprovers returns an error if a version of the skill has code that fewer
// reviewers approved than the namespace requires. If several approvals are
// required, the uploader's own approval does not count.
func (h *skillRecord) checkApprovers(ctx context.Context, tx *store.Tx, in Namespace) error {
	rule, err := approvalRuleOf(ctx, &tx.Tables, in)
	if err != nil || !rule.excludesUploader() {
		return err
	}
	for before := int64(0); before != 1; {
		versions, err := tx.Versions.List(ctx, h.ID, before, store.MaxPage)
		if err != nil || len(versions) == 0 {
			return err
		}
		for _, v := range versions {
			before = v.Number
			if v.Review != Approved || !facts(v).HasCode {
				continue
			}
			n, err := rule.count(ctx, &tx.Tables, v, v.Approvers)
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
// who approved the version, and Pending if more approvals are required. Earlier
// approvals count only if the user may still review. If several are required, the
// uploader's approval is refused, even from an administrator.
func (h *skillRecord) addApproval(ctx context.Context, tx *store.Tx, p account.Principal, v store.Version) (approvers []string, r Review, err error) {
	required, err := h.requiredApprovers(ctx, &tx.Tables)
	if err != nil {
		return nil, "", err
	}
	rules, err := h.approvalRules(ctx, &tx.Tables)
	if err != nil {
		return nil, "", err
	}
	if v.CreatedBy == string(p.User) && slices.ContainsFunc(rules, approvalRule.excludesUploader) {
		return nil, "", invalidf("uploader's approval does not count in a group that requires %d approvers; ask another reviewer", required)
	}
	for _, id := range v.Approvers {
		may, err := mayReview(ctx, tx, h.Namespace, id)
		if err != nil {
			return nil, "", err
		}
		if may && id != string(p.User) {
			approvers = append(approvers, id)
		}
	}
	approvers = append(approvers, string(p.User))
	if v.Review == Approved {
		return approvers, Approved, nil
	}
	missing, err := h.missingApprovals(ctx, &tx.Tables, v, approvers)
	if err != nil {
		return nil, "", err
	}
	blocked, err := isBlocked(ctx, &tx.Tables, v)
	if err != nil {
		return nil, "", err
	}
	if len(missing) > 0 || blocked {
		return approvers, Pending, nil
	}
	return approvers, Approved, nil
}

// mayReview reports whether a user is an active administrator or maintains the group
// of a namespace.
func mayReview(ctx context.Context, tx *store.Tx, n Namespace, id string) (bool, error) {
	u, err := tx.Users.Get(ctx, id)
	if isNotFound(err) || err == nil && u.Disabled {
		return false, nil
	}
	if err != nil || u.Admin {
		return u.Admin, err
	}
	memberships, err := tx.Groups.ListMemberships(ctx, id)
	return slices.ContainsFunc(memberships, func(m store.Member) bool {
		return m.GroupID == n.Group() && slices.Index(ranks, m.Role) >= slices.Index(ranks, store.Maintainer)
	}), err
}

// newVersions returns versions of a skill as the principal may see them, with the
// number of required approvers.
func (l *Library) newVersions(ctx context.Context, p account.Principal, h *skillRecord, rows ...store.Version) ([]*Version, error) {
	required, err := h.requiredApprovers(ctx, &l.db.Tables)
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
func activePrincipal(ctx context.Context, tx *store.Tx, id string) (account.Principal, error) {
	u, err := tx.Users.Get(ctx, id)
	if isNotFound(err) || err == nil && u.Disabled {
		return account.Principal{}, nil
	}
	if err != nil {
		return account.Principal{}, err
	}
	p := account.Principal{User: account.UserID(id), Admin: u.Admin, Scopes: account.AllScopes, Groups: map[account.GroupID]account.Role{}}
	memberships, err := tx.Groups.ListMemberships(ctx, id)
	for _, m := range memberships {
		p.Groups[account.GroupID(m.GroupID)] = account.Role(slices.Index(ranks, m.Role)) + account.Reporter
	}
	return p, err
}
