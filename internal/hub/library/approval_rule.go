package library

import (
	"cmp"
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// approvalRule specifies how many approvals a namespace requires, and from whom.
type approvalRule struct {
	in       Namespace
	required int
	group    string     // ID of the group whose members must approve; "" for any reviewer
	role     store.Role // lowest role in that group, or in the group of the namespace
	// unmeetable reports that another group's members must approve, and that too few of
	// them can.
	unmeetable bool
}

// mayChange reports whether the principal may change the rule.
func (r approvalRule) mayChange(p account.Principal) bool {
	return p.Admin || p.Groups[account.GroupID(r.in.Group())] == account.Owner
}

// MissingApproval specifies an approval that a version still needs.
type MissingApproval struct {
	Count  int    `json:"count" doc:"Number of approvals"`
	Group  string `json:"group,omitempty" doc:"ID of the group whose members must give them; absent if only administrators may"`
	Name   string `json:"name,omitempty" doc:"Name of the group"`
	Role   string `json:"role" enum:"reporter,developer,maintainer,owner,admin" doc:"Lowest role in the group; admin without a group"`
	Admins bool   `json:"admins" doc:"Whether those of administrators count even if they are no members of the group"`
}

// isSpecific reports whether only the approvals of some reviewers count.
func (r approvalRule) isSpecific() bool {
	return r.in.Group() != "" && (r.group != "" || r.role != store.Maintainer)
}

// excludesUploader reports whether the approval of a version's uploader does not count,
// even if the uploader is an administrator.
func (r approvalRule) excludesUploader() bool { return r.required > 1 || r.isSpecific() }

// approverGroup returns the ID of the group whose members must approve versions of a
// skill that home owns, or "" if only administrators may.
func (r approvalRule) approverGroup(home Namespace) string {
	if r.isSpecific() {
		return cmp.Or(r.group, r.in.Group())
	}
	return home.Group()
}

// counts reports whether the approval of a version counts if a reviewer of the skill
// gives it. uploader is the user who uploaded the version.
func (r approvalRule) counts(reviewer account.Principal, uploader string) bool {
	switch {
	case r.excludesUploader() && string(reviewer.User) == uploader:
		return false
	case !r.isSpecific(), reviewer.Admin && r.group == "":
		return true
	}
	least := accountRole(r.role)
	return least > account.Outsider && reviewer.Groups[account.GroupID(r.approverGroup(""))] >= least
}

// accountRole returns a role in a group as authorization represents it.
func accountRole(r store.Role) account.Role {
	if i := slices.Index(ranks, r); i >= 0 {
		return account.Role(i) + account.Reporter
	}
	return account.Outsider
}

// approvalReader reads the rules about approvals, and the users who approved, from the
// database. It reads each of them once.
type approvalReader struct {
	t     *store.Tables
	rules map[Namespace]approvalRule
	users map[string]account.Principal
	// requested holds the versions, by skill ID, that the principal requested to change. It
	// is nil until it is needed.
	requested map[string]int64
}

// newApprovalReader returns a reader for a request of the principal.
func newApprovalReader(t *store.Tables, p account.Principal) *approvalReader {
	own := p
	own.Scopes = account.AllScopes
	return &approvalReader{t: t, rules: map[Namespace]approvalRule{}, users: map[string]account.Principal{string(p.User): own}}
}

func (a *approvalReader) rule(ctx context.Context, n Namespace) (approvalRule, error) {
	if r, known := a.rules[n]; known {
		return r, nil
	}
	r := approvalRule{in: n, required: 1, role: store.Maintainer}
	if n.Group() != "" {
		g, err := a.t.Groups.Get(ctx, n.Group())
		switch {
		case err == nil:
			r.required, r.group, r.role = int(g.RequiredApprovers), g.ApproverGroup, g.ApproverRole
			if r.group != "" && r.group != g.ID {
				n, err := a.t.Groups.CountApprovers(ctx, g)
				if err != nil {
					return r, err
				}
				r.unmeetable = n < g.RequiredApprovers
			}
		case !isNotFound(err): // otherwise it was just deleted
			return r, err
		}
	}
	a.rules[n] = r
	return r, nil
}

// rulesOf returns the rules of the namespaces that own and list a skill.
func (a *approvalReader) rulesOf(ctx context.Context, home Namespace, listings []Namespace) ([]approvalRule, error) {
	var out []approvalRule
	for i, n := range append([]Namespace{home}, listings...) {
		if i > 0 && n == home {
			continue
		}
		r, err := a.rule(ctx, n)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// required returns how many reviewers must approve a version of a skill: the highest
// number that any of its namespaces requires.
func (a *approvalReader) required(ctx context.Context, home Namespace, listings []Namespace) (int, error) {
	rules, err := a.rulesOf(ctx, home, listings)
	most := 1
	for _, r := range rules {
		most = max(most, r.required)
	}
	return most, err
}

// reviewers returns those of the users who may review a version of a skill that home
// owns. uploader is the user who uploaded the version.
func (a *approvalReader) reviewers(ctx context.Context, home Namespace, uploader string, ids []string) ([]account.Principal, error) {
	var out []account.Principal
	for _, id := range ids {
		p, known := a.users[id]
		if !known {
			var err error
			if p, err = activePrincipal(ctx, a.t, id); err != nil {
				return nil, err
			}
			a.users[id] = p
		}
		if account.Can(p, account.SkillReview, accountResource(home, uploader)) {
			out = append(out, p)
		}
	}
	return out, nil
}

// count returns how many of the approvals of a version count for a rule. Those of users
// who may no longer review do not.
func (a *approvalReader) count(ctx context.Context, r approvalRule, home Namespace, uploader string, approvers []string) (n int, err error) {
	reviewers, err := a.reviewers(ctx, home, uploader, approvers)
	for _, p := range reviewers {
		if r.counts(p, uploader) {
			n++
		}
	}
	return n, err
}

// missing returns the approvals that a version with the given approvers awaits. It does
// not set the names of groups.
func (a *approvalReader) missing(ctx context.Context, home Namespace, listings []Namespace, uploader string, approvers []string) ([]MissingApproval, error) {
	rules, err := a.rulesOf(ctx, home, listings)
	if err != nil {
		return nil, err
	}
	out := []MissingApproval{}
	for _, r := range rules {
		n, err := a.count(ctx, r, home, uploader, approvers)
		if err != nil {
			return nil, err
		}
		if n >= r.required {
			continue
		}
		m := MissingApproval{Count: r.required - n, Group: r.approverGroup(home), Role: string(r.role), Admins: r.group == ""}
		switch {
		case m.Group == "":
			m.Role = "admin"
		case !r.isSpecific():
			m.Role = string(store.Maintainer)
		}
		same := func(other MissingApproval) bool {
			return other.Group == m.Group && other.Role == m.Role && other.Admins == m.Admins
		}
		if i := slices.IndexFunc(out, same); i >= 0 { // two namespaces require approvals of the same users
			out[i].Count = max(out[i].Count, m.Count)
			continue
		}
		out = append(out, m)
	}
	return out, nil
}

// counts reports whether the approval of a version counts for one of the rules if the
// principal, who may review the version, gives it, or closes the principal's request for
// changes.
func (a *approvalReader) counts(ctx context.Context, p account.Principal, rules []approvalRule, v store.PendingVersion) (bool, error) {
	if slices.ContainsFunc(rules, func(r approvalRule) bool { return r.counts(p, v.CreatedBy) }) {
		return true, nil
	}
	if a.requested == nil {
		open, err := a.t.ChangeRequests.ListOpenBy(ctx, string(p.User))
		if err != nil {
			return false, err
		}
		a.requested = map[string]int64{}
		for _, r := range open { // at most one for each skill
			a.requested[r.SkillID] = r.Number
		}
	}
	number, requested := a.requested[v.SkillID]
	return requested && number <= v.Number, nil
}

// needsDecision reports whether a version that is awaiting review needs a decision by
// the principal: the principal may review the version, the approval would count, and
// the principal has not already given an approval that waits for others. If too few
// users can approve, those who may change the rule have to decide.
func (a *approvalReader) needsDecision(ctx context.Context, p account.Principal, home Namespace, listings []Namespace, v store.PendingVersion) (bool, error) {
	if !account.Can(p, account.SkillReview, accountResource(home, v.CreatedBy)) {
		return false, nil
	}
	user := string(p.User)
	rules, err := a.rulesOf(ctx, home, listings)
	if err == nil && slices.ContainsFunc(rules, func(r approvalRule) bool { return r.unmeetable && r.mayChange(p) }) {
		return true, nil
	}
	if err != nil || v.CreatedBy == user && slices.ContainsFunc(rules, approvalRule.excludesUploader) {
		return false, err
	}
	if !slices.Contains(v.Approvers, user) {
		return a.counts(ctx, p, rules, v)
	}
	missing, err := a.missing(ctx, home, listings, v.CreatedBy, v.Approvers)
	if err != nil || len(missing) > 0 {
		return false, err
	}
	blocked, err := isBlocked(ctx, a.t, v.SkillID, v.Number, user)
	return !blocked, err
}

// missingApprovals returns the approvals that a version with the given approvers
// awaits.
func (h *skillRecord) missingApprovals(ctx context.Context, a *approvalReader, v store.Version, approvers []string) ([]MissingApproval, error) {
	out, err := a.missing(ctx, h.Namespace, h.listings, v.CreatedBy, approvers)
	for i, m := range out {
		if m.Group == "" {
			continue
		}
		g, err := a.t.Groups.Get(ctx, m.Group)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[i].Name = untrusted.New(cmp.Or(g.Display, g.Name)).ForPage()
	}
	return out, err
}
