package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Request asks whether a skill script may run.
type Request struct {
	Principal Principal
	Session   string // may be empty
	Subject   Digest // current digest of the skill
	Name      string // name of the skill
	Origin    string
	Needs     []Need // current dependencies, whose code runs too
	// Requested holds the permissions that the run requests. Requested.Run is
	// always treated as set.
	Requested Permissions

	Enabled bool // whether skills in general and this skill are enabled
	Bundled bool // whether the skill and all its dependencies are part of this program
	ByUser  bool // whether the user typed the command; only for a [UserPrincipal]
}

// Code is the machine-readable reason for a decision.
type Code string

// Decision codes. The first three allow the run, the others deny it. The user
// can resolve [NotApproved], [Changed] and [Expired] by approving the skill.
const (
	bundled     Code = "bundled"
	byUser      Code = "typed"   // only this run; no grant is stored
	Granted     Code = "granted" // by Decision.Grant
	disabled    Code = "disabled"
	NotApproved Code = "not-approved"
	Changed     Code = "changed" // other bytes were approved
	Expired     Code = "expired"
	Unreadable  Code = "unreadable" // the grants cannot be read
	malformed   Code = "malformed"  // invalid principal, digest or request
)

// Decision is the decision on a [Request].
type Decision struct {
	Allow  bool
	Code   Code
	Reason string // reason, for users
	Hint   string // what the user can do about it; may be empty
	// Grant is the grant that permits the run, if Code is Granted. Otherwise
	// it is nil or a grant for the same skill that does not permit the run.
	Grant *Grant
	// Effective holds the permissions of the run: those both requested and
	// approved.
	Effective Permissions
	// Denied lists the requested permissions that are not approved.
	Denied []string
}

// Decide decides on a request according to the grants in s. It fails closed: if
// the grants cannot be read, it denies the request. It does not record the
// decision or use up a grant. Another process may revoke or use up the grant in
// the meantime, so the caller must check it again when starting the run.
func Decide(ctx context.Context, s Store, q Request) Decision {
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
	case q.ByUser && q.Principal.Kind == UserPrincipal:
		return q.allow(byUser, "started by the user", q.Requested)
	}
	g, err := findWith(ctx, s, q.Principal, q.Subject, q.Session, q.Needs)
	why, said := errors.AsType[*NotGrantedError](err)
	switch {
	case said:
		return q.deny(NotApproved, printable.Text(why.Reason, 1000), why.Hint)
	case errors.Is(err, ErrNotGranted):
		return q.explainMissing(ctx, s)
	case err != nil:
		return q.denyUnreadable(err)
	case g == nil || g.Principal != q.Principal || g.Subject != q.Subject:
		return q.denyUnreadable(errors.New("grant store returned a grant for something else"))
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
	if d.Denied = g.Permissions.missing(q.Requested); len(d.Denied) > 0 {
		d.Reason += ", but not " + strings.Join(d.Denied, ", ")
		d.Hint = approveHint
	}
	return d
}

// explainMissing returns a denial with the reason why no grant applies.
func (q *Request) explainMissing(ctx context.Context, s Store) Decision {
	grants, problems, err := s.List(ctx)
	if err != nil {
		return q.denyUnreadable(err)
	}
	now := time.Now()
	for _, g := range slices.Backward(grants) {
		if g.Permissions.Call || g.Principal != q.Principal || g.Name != q.Name || g.Origin != q.Origin || g.Session != "" && g.Session != q.Session {
			continue
		}
		var d Decision
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

func (q *Request) allow(code Code, reason string, effective Permissions) Decision {
	return Decision{Allow: true, Code: code, Reason: reason, Effective: effective}
}

func (q *Request) deny(code Code, reason, next string) Decision {
	return Decision{Code: code, Reason: reason, Hint: next, Denied: Permissions{}.missing(q.Requested)}
}

func (q *Request) denyUnreadable(err error) Decision {
	next := ""
	if u, ok := errors.AsType[*privatefile.UnsafeError](err); ok {
		next = "check the owner and permissions of " + printable.Text(u.Path, 500)
	}
	return q.deny(Unreadable, "cannot read grants: "+printable.Text(err.Error(), 1000), next)
}

// approveHint is the hint for a denial that the user can resolve by approving
// the skill.
const approveHint = "approve it after a review"

// describeChangedNeeds describes how the dependencies differ from the approved
// ones.
func describeChangedNeeds(approved, now []Need) string {
	for _, n := range sortedNeeds(now) {
		if !slices.Contains(approved, n) {
			return fmt.Sprintf("changed since it was approved: dependency %s (%s) was not approved", printable.Text(n.Name, 300), n.Digest.Short())
		}
	}
	for _, n := range sortedNeeds(approved) {
		if !slices.Contains(now, n) {
			return fmt.Sprintf("changed since it was approved: dependency %s (%s) was removed", printable.Text(n.Name, 300), n.Digest.Short())
		}
	}
	return "changed since it was approved: other dependencies"
}

// Record returns the audit record for the decision on q.
func (d Decision) Record(q Request) Record {
	r := Record{Principal: q.Principal, Action: "run", Subject: q.Subject, Name: q.Name, Decision: Deny, Reason: d.Reason,
		Details: map[string]string{"code": string(d.Code)}}
	if d.Allow {
		r.Decision = Allow
	}
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
