package library

import (
	"cmp"
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// approvalRule says how many approvals a namespace requires, and from whom.
type approvalRule struct {
	in       Namespace
	required int
	group    string     // ID of the group whose members must approve; "" for any reviewer
	role     store.Role // lowest role in that group, or in the group of the namespace
}

// MissingApproval says whose approval a version awaits.
type MissingApproval struct {
	Count int    `json:"count" doc:"Number of approvals"`
	Group string `json:"group,omitempty" doc:"ID of the group whose members must give them; absent for administrators"`
	Name  string `json:"name,omitempty" doc:"Name of the group"`
	Role  string `json:"role" enum:"reporter,developer,maintainer,owner,admin" doc:"Lowest role in the group"`
}

// approvalRuleOf returns the rule of a namespace.
func approvalRuleOf(ctx context.Context, t *store.Tables, n Namespace) (approvalRule, error) {
	out := approvalRule{in: n, required: 1, role: store.Maintainer}
	if n.Group() == "" {
		return out, nil
	}
	g, err := t.Groups.Get(ctx, n.Group())
	if isNotFound(err) { // just deleted
		return out, nil
	}
	out.required, out.group, out.role = int(g.RequiredApprovers), g.ApproverGroup, g.ApproverRole
	return out, err
}

// approvalRules returns the rules of the namespaces that own or list the skill.
func (h *skillRecord) approvalRules(ctx context.Context, t *store.Tables) ([]approvalRule, error) {
	var out []approvalRule
	seen := map[Namespace]bool{}
	for _, n := range append([]Namespace{h.Namespace}, h.listings...) {
		if seen[n] {
			continue
		}
		seen[n] = true
		r, err := approvalRuleOf(ctx, t, n)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// isSpecific reports whether only the approvals of some reviewers count.
func (r approvalRule) isSpecific() bool {
	return r.in.Group() != "" && (r.group != "" || r.role != store.Maintainer)
}

// excludesUploader reports whether the approval of a version's uploader does not count,
// even if the uploader is an administrator.
func (r approvalRule) excludesUploader() bool { return r.required > 1 || r.isSpecific() }

// counts reports whether a user's approval of a version counts.
func (r approvalRule) counts(ctx context.Context, t *store.Tables, v store.Version, id string) (bool, error) {
	if r.excludesUploader() && id == v.CreatedBy {
		return false, nil
	}
	if !r.isSpecific() {
		return true, nil
	}
	if u, err := t.Users.Get(ctx, id); err != nil && !isNotFound(err) || err == nil && u.Admin && r.group == "" {
		return err == nil, err
	}
	memberships, err := t.Groups.ListMemberships(ctx, id)
	return slices.ContainsFunc(memberships, func(m store.Member) bool {
		return m.GroupID == cmp.Or(r.group, r.in.Group()) && slices.Index(ranks, m.Role) >= slices.Index(ranks, r.role)
	}), err
}

// count returns how many approvals of a version count.
func (r approvalRule) count(ctx context.Context, t *store.Tables, v store.Version, approvers []string) (n int, err error) {
	for _, id := range approvers {
		ok, err := r.counts(ctx, t, v, id)
		if err != nil {
			return 0, err
		}
		if ok {
			n++
		}
	}
	return n, nil
}

// missingApprovals returns the approvals that a version with the given approvers
// awaits.
func (h *skillRecord) missingApprovals(ctx context.Context, t *store.Tables, v store.Version, approvers []string) ([]MissingApproval, error) {
	rules, err := h.approvalRules(ctx, t)
	if err != nil {
		return nil, err
	}
	out := []MissingApproval{}
	for _, r := range rules {
		n, err := r.count(ctx, t, v, approvers)
		if err != nil {
			return nil, err
		}
		if n >= r.required {
			continue
		}
		m := MissingApproval{Count: r.required - n, Group: cmp.Or(r.group, h.Namespace.Group()), Role: string(r.role)}
		if m.Group == "" { // only administrators review
			m.Role = "admin"
		} else if g, err := t.Groups.Get(ctx, m.Group); err == nil {
			m.Name = untrusted.New(cmp.Or(g.Display, g.Name)).ForPage()
		} else if !isNotFound(err) {
			return nil, err
		}
		out = append(out, m)
	}
	return out, nil
}
