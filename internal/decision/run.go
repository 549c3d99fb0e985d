// Package decision decides whether a skill's code may run and whether a tool may
// be called. It combines the rules of package policy with stored grants.
//
// It never asks the user, records a decision or uses up a grant; package
// execution and package tools do.
//
// Start with [ForRun] and [ForCall].
package decision

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/policy"
)

// RunRequest asks whether a skill's code may run.
type RunRequest struct {
	Principal policy.Principal
	Session   string        // may be empty
	Subject   policy.Digest // of the current files of the skill; see [SubjectOf]
	Name      string        // name of the skill
	Origin    string
	Needs     []policy.Need // current dependencies, whose code runs too
	// Requested holds the permissions that the run requests. Requested.Run is
	// always treated as set.
	Requested policy.Permissions

	Enabled bool // whether skills in general and this skill are enabled
	Bundled bool // whether the skill and all its dependencies are part of this program
	ByUser  bool // whether the user typed the command; only for a [policy.UserPrincipal]
}

// Codes of decisions on runs, in addition to those of package policy. The first
// two allow the run.
const (
	bundled   = "bundled"
	byUser    = "typed" // allows only this run, without a stored grant
	disabled  = "disabled"
	malformed = "malformed" // invalid principal, digest or request
)

// Run is the decision on a [RunRequest]. Its effect is never [policy.Ask]. If
// the code is not [Granted], its grant is nil or a grant for the same
// skill that does not permit the run.
type Run struct {
	policy.Decision
	// Effective holds the permissions of the run: those both requested and
	// approved.
	Effective policy.Permissions
	// Denied lists the requested permissions that are not approved.
	Denied []string
}

// ForRun decides on a request according to the grants in s. It fails closed: if
// the grants cannot be read, it denies the request. Another process may revoke
// or use up the grant in the meantime, so the caller must check it again when
// starting the run.
func ForRun(ctx context.Context, s policy.Store, q RunRequest) Run {
	q.Requested.Run = true
	ask, badAsk := q.Requested.Normalize()
	q.Requested = ask
	badSubject := q.Subject.Check()
	switch bad := errors.Join(badAsk, badSubject, q.Principal.Check()); {
	case bad != nil:
		return q.deny(malformed, "invalid request: "+printable.Text(bad.Error(), 500), "")
	case !q.Enabled:
		return q.deny(disabled, "disabled", "enable it in the configuration")
	case q.Bundled:
		return q.allow(bundled, "bundled with this program", q.Requested)
	case q.ByUser && q.Principal.Kind == policy.UserPrincipal:
		return q.allow(byUser, "started by the user", q.Requested)
	}
	g, err := lease.Find(ctx, s, q.Principal, q.Subject, q.Session, q.Needs)
	why, said := errors.AsType[*lease.NotGrantedError](err)
	switch {
	case said:
		return q.deny(NotApproved, printable.Text(why.Reason, 1000), why.Hint)
	case errors.Is(err, policy.ErrNotGranted):
		return q.explainMissing(ctx, s)
	case err != nil:
		return q.denyUnreadable(err)
	case g == nil || g.Principal != q.Principal || g.Subject != q.Subject:
		return q.denyUnreadable(errors.New("grant store returned a grant for another principal or subject"))
	case !g.NeedsExactly(q.Needs):
		d := q.deny(Changed, describeChangedNeeds(g.Needs, q.Needs), approveHint)
		d.Grant = g
		return d
	case !g.Permissions.Run:
		d := q.deny(NotApproved, "approved, but not to run scripts", approveHint)
		d.Grant = g
		return d
	}
	d := q.allow(Granted, "approved by "+g.By.String(), g.Permissions.Intersect(q.Requested))
	d.Grant = g
	if d.Denied = missingPermissions(g.Permissions, q.Requested); len(d.Denied) > 0 {
		d.Reason += ", but not " + strings.Join(d.Denied, ", ")
		d.Hint = approveHint
	}
	return d
}

// explainMissing returns a denial with the reason why no grant applies.
func (q *RunRequest) explainMissing(ctx context.Context, s policy.Store) Run {
	grants, problems, err := s.List(ctx)
	if err != nil {
		return q.denyUnreadable(err)
	}
	now := time.Now()
	for _, g := range slices.Backward(grants) {
		if g.Permissions.Call || g.Principal != q.Principal || g.Name != q.Name || g.Origin != q.Origin || g.Session != "" && g.Session != q.Session {
			continue
		}
		var d Run
		if g.Subject == q.Subject && g.Expired(now) {
			d = q.deny(Expired, "approval expired at "+g.Expires.Format(time.RFC3339), approveHint)
		} else if g.Subject != q.Subject {
			d = q.deny(Changed, "changed since it was approved (was "+g.Subject.Short()+", is "+q.Subject.Short()+")", approveHint)
		} else {
			continue // stored after the call to Find
		}
		d.Grant = &g
		return d
	}
	d := q.deny(NotApproved, "not approved", approveHint)
	if len(problems) > 0 {
		d.Reason += fmt.Sprintf("; %d grants are unreadable, the first: %s", len(problems), problems[0])
	}
	return d
}

func (q *RunRequest) allow(code, reason string, effective policy.Permissions) Run {
	return Run{Decision: policy.Decision{Effect: policy.Allow, Code: code, Reason: reason}, Effective: effective}
}

func (q *RunRequest) deny(code, reason, hint string) Run {
	return Run{Decision: policy.Decision{Effect: policy.Deny, Code: code, Reason: reason, Hint: hint}, Denied: missingPermissions(policy.Permissions{}, q.Requested)}
}

func (q *RunRequest) denyUnreadable(err error) Run {
	next := ""
	if u, ok := errors.AsType[*privatefile.UnsafeError](err); ok {
		next = "check the owner and permissions of " + printable.Text(u.Path, 500)
	}
	return q.deny(Unreadable, "cannot read grants: "+printable.Text(err.Error(), 1000), next)
}

// approveHint is the hint for a denial that the user can resolve by approving
// the skill.
const approveHint = "approve it after a review"

// describeChangedNeeds describes how the current dependencies differ from the
// approved ones.
func describeChangedNeeds(approved, now []policy.Need) string {
	for _, n := range sorted(now) {
		if !slices.Contains(approved, n) && IsForPlatformValue(n) {
			return "changed since it was approved: " + printable.Text(DescribeNeed(n), 300) + " was not approved"
		}
		if !slices.Contains(approved, n) {
			return fmt.Sprintf("changed since it was approved: dependency %s (%s) was not approved", printable.Text(n.Name, 300), n.Digest.Short())
		}
	}
	for _, n := range sorted(approved) {
		if !slices.Contains(now, n) && IsForPlatformValue(n) {
			return "changed since it was approved: it was approved for " + printable.Text(DescribeNeed(n), 300)
		}
		if !slices.Contains(now, n) {
			return fmt.Sprintf("changed since it was approved: dependency %s (%s) was removed", printable.Text(n.Name, 300), n.Digest.Short())
		}
	}
	return "changed since it was approved: other dependencies"
}

func sorted(needs []policy.Need) []policy.Need {
	return slices.SortedFunc(slices.Values(needs), func(a, b policy.Need) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Digest, b.Digest))
	})
}

// missingPermissions describes each requested permission that granted does not
// cover.
func missingPermissions(granted, requested policy.Permissions) []string {
	var out []string
	add := func(name string, one policy.Permissions) {
		if !granted.Covers(one) {
			out = append(out, name)
		}
	}
	add("running scripts", policy.Permissions{Run: requested.Run})
	add("calling a tool", policy.Permissions{Call: requested.Call})
	for _, h := range requested.Network {
		add("network "+printable.Text(h, 300), policy.Permissions{Network: []string{h}})
	}
	for _, s := range requested.Secrets {
		add("secret "+printable.Text(s, 300), policy.Permissions{Secrets: []string{s}})
	}
	add("writing to the workspace", policy.Permissions{WorkspaceWrite: requested.WorkspaceWrite})
	add("running without a sandbox", policy.Permissions{Unsandboxed: requested.Unsandboxed})
	add("the network of the host", policy.Permissions{HostNetwork: requested.HostNetwork})
	return out
}

// Record returns the audit record for the decision on q.
func (d Run) Record(q RunRequest) policy.Record {
	r := policy.Record{Principal: q.Principal, Action: "run", Subject: q.Subject, Name: q.Name, Decision: d.Effect, Reason: d.Reason,
		Details: map[string]string{"code": string(d.Code)}}
	for key, value := range map[string]string{
		"origin":  q.Origin,
		"session": q.Session,
		"network": strings.Join(d.Effective.Network, " "),
		"secrets": strings.Join(d.Effective.Secrets, " "), // names, not values
		"denied":  strings.Join(d.Denied, ", "),
	} {
		if value != "" {
			r.Details[key] = value
		}
	}
	for key, set := range map[string]bool{
		"workspace_write": d.Effective.WorkspaceWrite,
		"unsandboxed":     d.Effective.Unsandboxed,
		"host_network":    d.Effective.HostNetwork,
	} {
		if set {
			r.Details[key] = "true"
		}
	}
	if d.Grant != nil {
		r.Details["grant"] = d.Grant.ID
	}
	return r
}
