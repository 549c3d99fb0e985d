package execution

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// Caller describes who starts a run: the principal, the session, and the
// permissions that the user granted by typing the command.
type Caller struct {
	Principal policy.Principal
	Session   string
	// ByUser is set if the user typed the command, which approves this run.
	// WriteWorkspace and HostNetwork are ignored otherwise.
	ByUser                      bool
	WriteWorkspace, HostNetwork bool
}

// A RefusedError reports that the policy does not allow a skill's code to run.
type RefusedError struct {
	Skill    string
	Decision policy.Decision
}

func (e *RefusedError) Error() string {
	return fmt.Sprintf("skill %s may not run scripts: %s", e.Skill, e.Decision.Reason)
}

// authorizer decides whether a skill's code is allowed to run, and records its
// decisions.
type authorizer struct {
	catalog  *catalog.Catalog
	grants   policy.Store
	audit    func(ctx context.Context, r policy.Record) error
	limit    policy.Bounds
	sandbox  sandbox.Backend
	services func(*catalog.Entry, *skill.Skill) (ServiceNeeds, error)
}

// authorization is a permission to run code, with the resources that the code
// may use.
type authorization struct {
	bounds      policy.Bounds // requested and granted
	inject      []policy.Injection
	hostNetwork bool          // use the host's network without a proxy
	grant       *policy.Grant // nil if no grant was needed
	request     decision.RunRequest
	notes       []string // notes for the user

	ctx     context.Context // done when the permission is revoked
	release func()
	check   func() error // checks the permission again; nil if ctx suffices
	// revokedError records that the permission was revoked before the start,
	// and returns the error to report.
	revokedError func(ctx context.Context, cause error) error
}

// authorize checks the policy and returns an authorization, which ends when the
// grant is revoked. The caller must release the authorization.
func (a *authorizer) authorize(ctx context.Context, s *openedSkill, c Caller) (*authorization, error) {
	all := lease.NewGroup(ctx, a.grants, 0)
	p, err := a.authorizeIn(ctx, all, s, c)
	if err != nil {
		all.Close()
		return nil, err
	}
	release := p.release
	p.release = func() { release(); all.Close() }
	return p, nil
}

// authorizeIn is like authorize, but adds the grant to a group. The caller must
// close the group after it has released the authorization.
func (a *authorizer) authorizeIn(ctx context.Context, all *lease.Group, s *openedSkill, c Caller) (*authorization, error) {
	asked, inject, problems, err := RequestedBounds(s.skill, a.limit)
	if err != nil {
		return nil, err
	}
	q := a.request(ctx, s, c, asked)
	d := decision.ForRun(ctx, a.grants, q)
	if d.Code == decision.Granted { // the approval also covers these
		d.Effective.HostNetwork, d.Effective.WorkspaceWrite = d.Grant.Permissions.HostNetwork, d.Grant.Permissions.WorkspaceWrite && a.limit.WorkspaceWrite
	}
	if err := a.recordDecision(ctx, d, q); err != nil {
		return nil, err
	}
	if d.Effect != policy.Allow {
		return nil, &RefusedError{s.name, d.Decision}
	}
	p := &authorization{inject: inject, hostNetwork: d.Effective.HostNetwork, grant: d.Grant, request: q}
	for _, w := range problems {
		p.notes = append(p.notes, fmt.Sprintf("ignored: %s: %s", w.Where, w.Message))
	}
	for _, what := range d.Denied {
		p.notes = append(p.notes, "not granted: "+what)
	}
	p.bounds = asked.Intersect(d.Effective.Bounds())
	p.bounds.WorkspaceWrite = d.Effective.WorkspaceWrite
	p.revokedError = func(ctx context.Context, cause error) error { return a.revokedError(ctx, s, q, cause) }
	if err := checkIsolation(ctx, a.sandbox, s.owner, p.bounds.MinTier); err != nil {
		return nil, err
	}
	if err := a.holdGrant(ctx, all, s, p); err != nil {
		return nil, err
	}
	return p, nil
}

// isAllowed reports whether the policy currently allows the skill to run. It
// records nothing.
func (a *authorizer) isAllowed(ctx context.Context, s *openedSkill, c Caller) bool {
	asked, _, _, err := RequestedBounds(s.skill, a.limit)
	return err == nil && decision.ForRun(ctx, a.grants, a.request(ctx, s, c, asked)).Effect == policy.Allow
}

// request returns the policy request for running a skill with the requested
// bounds.
func (a *authorizer) request(ctx context.Context, s *openedSkill, c Caller, requested policy.Bounds) decision.RunRequest {
	allows := requested.Permissions()
	if c.ByUser { // typing the command grants these
		allows.HostNetwork, allows.WorkspaceWrite = c.HostNetwork, c.WriteWorkspace
	}
	return decision.RunRequest{
		Principal: c.Principal, Session: c.Session, Subject: s.digest, Name: s.name, Origin: s.entry.Origin,
		Needs: append(s.needs(), a.serviceNeeds(ctx, s, c)...), Requested: allows, Enabled: true, Bundled: s.isBundled(), ByUser: c.ByUser,
	}
}

// serviceNeeds returns the platform values that the skill's servers use, with
// their current targets, and, if the servers need packages, the packages that
// the skill's grant covers. A package might not be installed yet, so the
// installed package is compared with the grant when the server starts. If this
// program does not read servers, serviceNeeds returns the packages and values
// that the grant covers.
func (a *authorizer) serviceNeeds(ctx context.Context, s *openedSkill, c Caller) []policy.Need {
	needs, err := a.services(s.entry, s.skill)
	unread := errors.Is(err, ErrNoServers)
	// Servers with an invalid configuration are not started, so the approval of
	// the scripts remains valid.
	if !unread && !needs.Installs {
		return needs.Variables
	}
	g, err := a.grants.Find(ctx, c.Principal, s.digest, c.Session)
	if err != nil || g == nil {
		return needs.Variables // the decision reports the error
	}
	covered := slices.DeleteFunc(slices.Clone(g.Needs), func(n policy.Need) bool { return !IsPackage(n) && !(unread && decision.IsForPlatformValue(n)) })
	return append(covered, needs.Variables...)
}

// checkIsolation returns an error if the sandbox provides less isolation than
// the bounds require.
func checkIsolation(ctx context.Context, b sandbox.Backend, o owner, minTier int) error {
	if minTier == 0 {
		return nil
	}
	if b == nil {
		return fmt.Errorf("%s: %w", o.label, &sandbox.UnavailableError{Backend: "none", Missing: fmt.Sprintf("a sandbox of isolation tier %d", minTier), Fix: "set Scripts.Sandbox"})
	}
	rep, err := b.Probe(ctx)
	if err == nil && int(rep.Tier) < minTier {
		err = &sandbox.UnsupportedError{Backend: rep.Backend, What: fmt.Sprintf("isolation tier %d, which the skill or the operator requires (available: tier %v)", minTier, rep.Tier)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", o.label, err)
	}
	return nil
}

// revokedError returns the error for a run whose permission was revoked after
// the policy allowed it.
func (a *authorizer) revokedError(ctx context.Context, s *openedSkill, q decision.RunRequest, cause error) error {
	ctx = context.WithoutCancel(ctx)
	q.Enabled = !s.isUnavailable(a.catalog.Snapshot())
	d := decision.ForRun(ctx, a.grants, q)
	if d.Effect == policy.Allow { // granted again in the meantime
		d = decision.Run{Decision: policy.Decision{Effect: policy.Deny, Code: decision.NotApproved, Reason: cause.Error()}}
	}
	if err := a.recordDecision(ctx, d, q); err != nil {
		return err
	}
	return &RefusedError{s.name, d.Decision}
}

// recordDecision records a policy decision in the audit log.
func (a *authorizer) recordDecision(ctx context.Context, d decision.Run, q decision.RunRequest) error {
	if a.audit == nil {
		return nil
	}
	if err := a.audit(ctx, d.Record(q)); err != nil {
		return fmt.Errorf("record decision to run %s: %w", q.Name, err)
	}
	return nil
}

var errUnavailable = errors.New("skill or a dependency is no longer available")

// holdGrant adds the grant to a group, and sets p.ctx and p.release. The context
// is cancelled when a grant of the group is revoked, or when the skill is disabled
// or removed from the catalog.
func (a *authorizer) holdGrant(ctx context.Context, all *lease.Group, s *openedSkill, p *authorization) error {
	held, cancel := context.WithCancelCause(ctx)
	revoke := func(cause error) { cancel(fmt.Errorf("%w: %w", execute.ErrDisabled, cause)) }
	unsubscribe := a.catalog.Subscribe(func(_, now *catalog.Snapshot) {
		if s.isUnavailable(now) {
			revoke(errUnavailable)
		}
	})
	// The subscription does not report earlier changes, so check again.
	if s.isUnavailable(a.catalog.Snapshot()) {
		unsubscribe()
		cancel(nil)
		return p.revokedError(ctx, errUnavailable)
	}
	stop := func() {}
	if p.grant != nil {
		if err := all.Add(ctx, *p.grant); err != nil {
			unsubscribe()
			cancel(nil)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			return p.revokedError(ctx, err)
		}
		ended := context.AfterFunc(all.Context(), func() {
			if held.Err() == nil {
				revoke(context.Cause(all.Context()))
			}
		})
		stop = func() { ended() }
	}
	p.ctx, p.release = held, func() { unsubscribe(); stop(); cancel(nil) }
	return nil
}

// checkPackage returns an error if the grant does not include the installed
// package.
func (p *authorization) checkPackage(skill string, f *packageCommand, installed *Package) error {
	if p.grant == nil || slices.Contains(p.grant.Needs, installed.Need()) {
		return nil
	}
	reason := fmt.Sprintf("%s %s was not installed when the skill was approved", installed.Name, installed.Version)
	for _, n := range p.grant.Needs {
		if strings.HasPrefix(n.Name, installed.Registry+":"+installed.Name+"@") {
			reason = fmt.Sprintf("approved %s, but installed %s", strings.TrimPrefix(n.Name, installed.Registry+":"), installed.Version)
			if n.Name == installed.Need().Name {
				reason = fmt.Sprintf("the installed files of %s %s differ from the approved ones, or an earlier version of Loadout approved them", installed.Name, installed.Version)
			}
		}
	}
	return &CommandError{f.launcher + " " + installed.Requested, reason + "; review skill " + skill + " and approve it again"}
}
