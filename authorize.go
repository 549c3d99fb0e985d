package loadout

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/skill"
)

// ApprovalRequest lists what a skill would get if the user approved its
// scripts.
type ApprovalRequest struct {
	Entry      *catalog.Entry
	Digest     policy.Digest
	Manifest   skill.Manifest
	Needs      []policy.Need
	Requested  policy.Bounds // requested bounds, within the bounds of this runtime
	Injections []policy.Injection
	Problems   []policy.Problem
	// Services are the servers and the provider of the skill. Installed
	// packages of servers that npx or uvx starts are in Needs: see
	// [Runtime.InstallPackages]. Without [Scripts.ReadServers], the list has no
	// servers, and none is started.
	Services []RequestedService
}

// ReadApprovalRequest returns the approval request of a skill. The error is a
// [*ServersError] if the servers of the skill cannot be read: such a skill must
// not be approved.
func (r *Runtime) ReadApprovalRequest(ctx context.Context, ref string) (*ApprovalRequest, error) {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	order, err := r.catalog.LoadOrder(ctx, e)
	if err != nil {
		return nil, err
	}
	w := &ApprovalRequest{Entry: e}
	for _, l := range order {
		m, err := r.catalog.CompleteManifest(ctx, l.Entry)
		if err != nil {
			return nil, err
		}
		if l.Entry != e {
			w.Needs = append(w.Needs, policy.Need{Name: l.Entry.Name, Digest: policy.Digest(m.Digest())})
			continue
		}
		w.Manifest, w.Digest = m, policy.Digest(m.Digest())
	}
	s := order[len(order)-1].Skill
	if err := checkInManifest(w.Manifest, order[len(order)-1].Source); err != nil {
		return nil, err
	}
	if w.Services, err = r.requestedServices(e, s); err != nil && !errors.Is(err, ErrNoServers) {
		return nil, err
	}
	w.Needs = append(w.Needs, r.installedPackages(e, w.Services)...)
	w.Services = append(w.Services, borrowedProviders(s, order[:len(order)-1])...)
	w.Requested, w.Injections, w.Problems, err = r.requestedBounds(s)
	return w, err
}

// requestedBounds returns the bounds that a skill requests, within the bounds
// of this runtime.
func (r *Runtime) requestedBounds(s *skill.Skill) (policy.Bounds, []policy.Injection, []policy.Problem, error) {
	front, err := s.FrontmatterJSON()
	if err != nil {
		return policy.Bounds{}, nil, nil, err
	}
	asked, problems := policy.ParseRequestedBounds(front)
	return r.withinBounds(asked), policy.ParseInjections(front), problems, nil
}

// withinBounds returns the part of asked that this runtime allows.
func (r *Runtime) withinBounds(asked policy.Bounds) policy.Bounds {
	bounds := policy.Bounds{}
	if r.scripts != nil {
		bounds = r.scripts.Bounds
	}
	// Without a limit of the operator, the default limits of the sandbox apply.
	d := sandbox.DefaultLimits()
	applyDefaultLimit(&asked.MemoryMB, bounds.MemoryMB, int(d.Memory>>20))
	applyDefaultLimit(&asked.Seconds, bounds.Seconds, int(d.Wall.Seconds()))
	applyDefaultLimit(&asked.Processes, bounds.Processes, nodeProcesses*d.Processes)
	applyDefaultLimit(&asked.DiskMB, bounds.DiskMB, int(d.Work>>20))
	return policy.Intersect(bounds, asked)
}

func applyDefaultLimit(asked *int, bound, most int) {
	if bound == 0 {
		*asked = min(*asked, most)
	}
}

// authorize checks the policy and returns a context that ends when the grant is
// revoked.
func (j *job) authorize(ctx context.Context) (context.Context, func(), error) {
	ask, inject, problems, err := j.rt.requestedBounds(j.skill)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range problems {
		j.note("ignored: %s: %s", p.Where, p.Message)
	}
	q := j.request(ctx, ask)
	d := policy.Decide(ctx, j.grants(), q)
	if d.Code == policy.Granted { // the approval also covers these
		d.Effective.HostNetwork, d.Effective.WorkspaceWrite = d.Grant.Permissions.HostNetwork, d.Grant.Permissions.WorkspaceWrite && j.scripts.Bounds.WorkspaceWrite
	}
	j.policyRequest = q
	if err := j.recordDecision(ctx, d, q); err != nil {
		return nil, nil, err
	}
	if !d.Allow {
		return nil, nil, &RefusedError{j.entry.Name, d}
	}
	for _, what := range d.Denied {
		j.note("not granted: %s", what)
	}
	j.effective = policy.Intersect(ask, d.Effective.Bounds())
	j.effective.WorkspaceWrite = d.Effective.WorkspaceWrite
	j.inject, j.hostNetwork, j.granted = inject, d.Effective.HostNetwork, d.Grant
	if err := j.checkIsolation(ctx); err != nil {
		return nil, nil, err
	}
	return j.holdGrant(ctx, d.Grant)
}

// request returns the policy request for what the skill requests.
func (j *job) request(ctx context.Context, ask policy.Bounds) policy.Request {
	allows := ask.Permissions()
	if j.run.ByUser { // the user grants it with the command
		allows.HostNetwork, allows.WorkspaceWrite = j.run.HostNetwork, j.run.WriteWorkspace
	}
	return policy.Request{
		Principal: j.run.Principal, Session: j.run.Session, Subject: policy.Digest(j.digest()), Name: j.entry.Name, Origin: j.entry.Origin,
		Needs: append(j.needs(), j.approvedPackages(ctx)...), Requested: allows, Enabled: true, Bundled: j.isBundled(), ByUser: j.run.ByUser,
	}
}

// checkIsolation returns an error if the sandbox isolates less than the bounds
// require.
func (j *job) checkIsolation(ctx context.Context) error {
	if j.effective.MinTier == 0 {
		return nil
	}
	rep, err := j.scripts.Sandbox.Probe(ctx)
	if err == nil && int(rep.Tier) < j.effective.MinTier {
		err = &sandbox.UnsupportedError{Backend: rep.Backend, What: fmt.Sprintf("isolation of tier %d, as the skill or the operator demands: it has tier %v here", j.effective.MinTier, rep.Tier)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.owner(), err)
	}
	return nil
}

// refusal returns the error for a run that policy allowed before the grant was
// revoked.
func (j *job) refusal(ctx context.Context, why error) error {
	ctx = context.WithoutCancel(ctx)
	q := j.policyRequest
	q.Enabled = !j.isUnavailable(j.rt.catalog.Snapshot())
	d := policy.Decide(ctx, j.grants(), q)
	if d.Allow { // granted again
		d = policy.Decision{Code: policy.NotApproved, Reason: why.Error()}
	}
	if err := j.recordDecision(ctx, d, q); err != nil {
		return err
	}
	return &RefusedError{j.entry.Name, d}
}

// recordDecision records a policy decision in the audit log.
func (j *job) recordDecision(ctx context.Context, d policy.Decision, q policy.Request) error {
	if j.scripts.Audit == nil {
		return nil
	}
	if err := j.scripts.Audit.Append(ctx, d.Record(q)); err != nil {
		return fmt.Errorf("record the decision to run %s: %w", j.entry.Name, err)
	}
	return nil
}

// isUnavailable reports whether the skill or one of its dependencies is
// disabled or hidden.
func (j *job) isUnavailable(now *catalog.Snapshot) bool {
	return now.Disabled || slices.ContainsFunc(j.parts, func(p part) bool { return now.IsHidden(p.entry.Key()) })
}

func (j *job) isBundled() bool {
	for _, p := range j.parts {
		if p.entry.Scope != catalog.Bundled {
			return false
		}
	}
	return true
}

func (j *job) grants() policy.Store {
	if j.scripts.Grants != nil {
		return j.scripts.Grants
	}
	return &policy.MemoryStore{}
}

// holdGrant returns a context that ends when the grant is revoked, or the skill
// is disabled or removed from the catalog.
func (j *job) holdGrant(ctx context.Context, g *policy.Grant) (context.Context, func(), error) {
	held, cancel := context.WithCancelCause(ctx)
	withdrawn := func(why error) { cancel(fmt.Errorf("%w: %w", sandbox.ErrDisabled, why)) }
	unavailable := errors.New("it, or a skill that it needs, is no longer available")
	unsubscribe := j.rt.catalog.Subscribe(func(_, now *catalog.Snapshot) {
		if j.isUnavailable(now) {
			withdrawn(unavailable)
		}
	})
	// The subscription misses changes made before it started, so check again.
	if j.isUnavailable(j.rt.catalog.Snapshot()) {
		unsubscribe()
		cancel(nil)
		return nil, nil, j.refusal(ctx, unavailable)
	}
	stop := func() {}
	if g != nil {
		granted, end, err := policy.AcquireGrant(held, j.grants(), *g, 0)
		if err != nil {
			unsubscribe()
			cancel(nil)
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			return nil, nil, j.refusal(ctx, err)
		}
		ended := context.AfterFunc(granted, func() {
			if held.Err() == nil {
				withdrawn(context.Cause(granted))
			}
		})
		stop = func() { ended(); end() }
	}
	return held, func() { unsubscribe(); stop(); cancel(nil) }, nil
}
