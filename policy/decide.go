package policy

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/pattern"
)

// Request asks whether a script of a skill may run.
type Request struct {
	Principal Principal
	Session   string // "" for none
	Subject   Digest // of the skill, as it is now
	Name      string // of the skill
	Origin    string
	Needs     []Need // all that runs along, as it is now
	// Ask is what the run would be given. Ask.Run is taken as set.
	Ask Allows

	Enabled bool // skills are switched on, and this one is
	Bundled bool // the skill and all it needs came with this program
	Typed   bool // a person typed the command that runs it; only for a [Person]
}

// Code is why a decision is as it is, for programs.
type Code string

// The codes of decisions. The first three allow, the others deny; a person who
// approves can change [NotApproved], [Changed] and [Expired].
const (
	Bundled     Code = "bundled"
	Typed       Code = "typed"   // for this run: nothing is kept
	Granted     Code = "granted" // by Decision.Grant
	Disabled    Code = "disabled"
	NotApproved Code = "not-approved"
	Changed     Code = "changed" // other bytes were approved
	Expired     Code = "expired"
	Unreadable  Code = "unreadable" // whether it was approved cannot be known
	Malformed   Code = "malformed"  // the principal, the digest or what is asked for has no usable form
)

// Decision answers a [Request].
type Decision struct {
	Allow  bool
	Code   Code
	Reason string // for people
	Next   string // what a person can do about it; "" for nothing
	// Grant is what permits the run where Code is Granted; else a grant of
	// the same skill that does not permit it, where there is one.
	Grant *Grant
	// Effective is what the run may be given: what is asked and approved.
	Effective Allows
	// Denied names what was asked for beyond that. The run is not given it.
	Denied []string
}

// Decide answers a request by the grants of r. It fails closed: where they
// cannot be read the answer is no. It records nothing. A run that is granted
// begins with [Hold], as other processes may withdraw the grant or use it up.
func Decide(ctx context.Context, r Reader, q Request) Decision {
	q.Ask.Run = true
	ask, badAsk := q.Ask.normal()
	q.Ask = ask
	_, badSubject := ParseDigest(string(q.Subject))
	switch bad := errors.Join(badAsk, badSubject, q.Principal.check()); {
	case bad != nil:
		return q.deny(Malformed, "the request cannot be decided: "+visible(bad.Error(), 500), "")
	case !q.Enabled:
		return q.deny(Disabled, "it is disabled", "enable it in the configuration")
	case q.Bundled:
		return q.allow(Bundled, "it came with this program", q.Ask)
	case q.Typed && q.Principal.Kind == Person:
		return q.allow(Typed, "a person runs it", q.Ask)
	}
	g, err := findWith(ctx, r, q.Principal, q.Subject, q.Session, q.Needs)
	why, said := errors.AsType[*NotGrantedError](err)
	switch {
	case said:
		return q.deny(NotApproved, visible(why.Reason, 1000), why.Next)
	case errors.Is(err, ErrNotGranted):
		return q.notGranted(ctx, r)
	case err != nil:
		return q.unreadable(err)
	case g == nil || g.Principal != q.Principal || g.Subject != q.Subject:
		return q.unreadable(errors.New("it answered with a grant of something else"))
	case !g.NeedsExactly(q.Needs):
		d := q.deny(Changed, changedNeeds(g.Needs, q.Needs), q.approve())
		d.Grant = g
		return d
	case !g.Allows.Run:
		d := q.deny(NotApproved, "it was approved, but not to run scripts", q.approve())
		d.Grant = g
		return d
	}
	d := q.allow(Granted, "approved by "+g.By.String(), g.Allows.Intersect(q.Ask))
	d.Grant = g
	if d.Denied = g.Allows.missing(q.Ask); len(d.Denied) > 0 {
		d.Reason += ", but not " + strings.Join(d.Denied, ", ")
		d.Next = q.approve()
	}
	return d
}

// notGranted looks for why nothing applies.
func (q *Request) notGranted(ctx context.Context, r Reader) Decision {
	grants, problems, err := r.List(ctx)
	if err != nil {
		return q.unreadable(err)
	}
	now := time.Now()
	for _, g := range slices.Backward(grants) {
		if g.Allows.Call || g.Principal != q.Principal || g.Name != q.Name || g.Origin != q.Origin || g.Session != "" && g.Session != q.Session {
			continue
		}
		var d Decision
		if g.Subject == q.Subject && g.Expired(now) {
			d = q.deny(Expired, "its approval expired at "+g.Expires.Format(time.RFC3339), q.approve())
		} else if g.Subject != q.Subject {
			d = q.deny(Changed, "changed since it was approved: it was "+g.Subject.Short()+" and is "+q.Subject.Short(), q.approve())
		} else {
			continue // given between Find and List
		}
		d.Grant = &g
		return d
	}
	d := q.deny(NotApproved, "not approved", q.approve())
	if len(problems) > 0 {
		d.Reason += fmt.Sprintf("; %d grants cannot be read, the first: %s", len(problems), problems[0])
	}
	return d
}

func (q *Request) allow(code Code, reason string, effective Allows) Decision {
	return Decision{Allow: true, Code: code, Reason: reason, Effective: effective}
}

func (q *Request) deny(code Code, reason, next string) Decision {
	return Decision{Code: code, Reason: reason, Next: next, Denied: Allows{}.missing(q.Ask)}
}

func (q *Request) unreadable(err error) Decision {
	next := ""
	if u, ok := errors.AsType[*UnsafeError](err); ok {
		next = "look at " + visible(u.Path, 500) + ", who owns it and who can write it"
	}
	return q.deny(Unreadable, "policy cannot be read: "+visible(err.Error(), 1000), next)
}

var plain = pattern.New(`\A[A-Za-z0-9_][A-Za-z0-9._/@-]*\z`)

// approve is the command that changes the answer.
func (q *Request) approve() string {
	if plain().MatchString(q.Name) {
		return "loadout approve " + q.Name
	}
	return "loadout approve " + string(q.Subject) // a name that a shell could take for more
}

// changedNeeds says what is different.
func changedNeeds(approved, now []Need) string {
	for _, n := range sortedNeeds(now) {
		if !slices.Contains(approved, n) {
			return fmt.Sprintf("changed since it was approved: it needs %s as %s, which was not approved with it", visible(n.Name, 300), n.Digest.Short())
		}
	}
	for _, n := range sortedNeeds(approved) {
		if !slices.Contains(now, n) {
			return fmt.Sprintf("changed since it was approved: it no longer needs %s as %s", visible(n.Name, 300), n.Digest.Short())
		}
	}
	return "changed since it was approved: it needs other skills"
}

// Record returns what the audit log keeps of the answer to q.
func (d Decision) Record(q Request) Record {
	r := Record{Principal: q.Principal, Action: "run", Subject: q.Subject, Name: q.Name, Decision: Denied, Reason: d.Reason,
		Details: map[string]string{"code": string(d.Code)}}
	if d.Allow {
		r.Decision = Allowed
	}
	for key, value := range map[string]string{
		"origin":  q.Origin,
		"session": q.Session,
		"network": strings.Join(d.Effective.Network, " "),
		"secrets": strings.Join(d.Effective.Secrets, " "), // names
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
