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

// Wish is what a skill would be given to run its scripts: what a person
// approves.
type Wish struct {
	Entry    *catalog.Entry
	Digest   policy.Digest
	Manifest skill.Manifest
	Needs    []policy.Need
	Ask      policy.Bounds // what it asks for, within the bounds of this runtime
	Inject   []policy.Injection
	Problems []policy.Problem
	// Services are the servers and the provider that it brings. The packages of
	// those that are started by npx or uvx are among the Needs where they are
	// installed: see [Runtime.Prepare]. Without [Scripts.Servers] there are no
	// servers in it, and none is started.
	Services []WishedService
}

// Wish reads what a skill asks for. The error is a [*ServersError] where it cannot
// be told what servers it brings: such a skill is not to be approved.
func (r *Runtime) Wish(ctx context.Context, ref string) (*Wish, error) {
	e, err := r.catalog.Resolve(ctx, ref)
	if err != nil {
		return nil, err
	}
	order, err := r.catalog.Snapshot().LoadOrder(e)
	if err != nil {
		return nil, err
	}
	w := &Wish{Entry: e}
	for _, o := range order {
		m, err := r.catalog.WholeManifest(ctx, o)
		if err != nil {
			return nil, err
		}
		if o != e {
			w.Needs = append(w.Needs, policy.Need{Name: o.Name, Digest: policy.Digest(m.Digest())})
			continue
		}
		w.Manifest, w.Digest = m, policy.Digest(m.Digest())
	}
	s, src, err := r.catalog.Read(ctx, e)
	if err == nil {
		err = sameText(w.Manifest, src)
	}
	if err != nil {
		return nil, err
	}
	if w.Services, err = r.services(e, s); err != nil && !errors.Is(err, ErrNoServers) {
		return nil, err
	}
	w.Needs = append(w.Needs, r.installed(e, w.Services)...)
	w.Services = append(w.Services, r.borrowed(ctx, s, order[:len(order)-1])...)
	w.Ask, w.Inject, w.Problems, err = r.ask(s)
	return w, err
}

// ask is what a skill asks for, no more than this runtime gives.
func (r *Runtime) ask(s *skill.Skill) (policy.Bounds, []policy.Injection, []policy.Problem, error) {
	front, err := s.FrontmatterJSON()
	if err != nil {
		return policy.Bounds{}, nil, nil, err
	}
	asked, problems := policy.ParseAsk(front)
	return r.within(asked), policy.ParseInject(front), problems, nil
}

// within is what is asked for, no more than this runtime gives.
func (r *Runtime) within(asked policy.Bounds) policy.Bounds {
	bounds := policy.Bounds{}
	if r.scripts != nil {
		bounds = r.scripts.Bounds
	}
	// Where the operator says nothing, the limits of the sandbox hold.
	d := sandbox.DefaultLimits()
	narrow(&asked.MemoryMB, bounds.MemoryMB, int(d.Memory>>20))
	narrow(&asked.Seconds, bounds.Seconds, int(d.Wall.Seconds()))
	narrow(&asked.Processes, bounds.Processes, nodeProcesses*d.Processes)
	narrow(&asked.DiskMB, bounds.DiskMB, int(d.Work>>20))
	return policy.Intersect(bounds, asked)
}

func narrow(asked *int, bound, most int) {
	if bound == 0 {
		*asked = min(*asked, most)
	}
}

// permit asks policy, and returns a context that ends when leave is withdrawn.
func (j *job) permit(ctx context.Context) (context.Context, func(), error) {
	ask, inject, problems, err := j.rt.ask(j.skill)
	if err != nil {
		return nil, nil, err
	}
	for _, p := range problems {
		j.note("ignored: %s: %s", p.Where, p.Message)
	}
	q := j.request(ctx, ask)
	d := policy.Decide(ctx, j.grants(), q)
	if d.Code == policy.Granted { // or approved it without being asked
		d.Effective.HostNetwork, d.Effective.WorkspaceWrite = d.Grant.Allows.HostNetwork, d.Grant.Allows.WorkspaceWrite && j.scripts.Bounds.WorkspaceWrite
	}
	j.asked = q
	if err := j.decided(ctx, d, q); err != nil {
		return nil, nil, err
	}
	if !d.Allow {
		return nil, nil, &RefusedError{j.entry.Name, d}
	}
	for _, what := range d.Denied {
		j.note("not granted: %s", what)
	}
	j.effect = policy.Intersect(ask, d.Effective.Bounds())
	j.effect.WorkspaceWrite = d.Effective.WorkspaceWrite
	j.inject, j.host, j.granted = inject, d.Effective.HostNetwork, d.Grant
	if err := j.isolated(ctx); err != nil {
		return nil, nil, err
	}
	return j.hold(ctx, d.Grant)
}

// request is the question to policy, with what the skill asks for.
func (j *job) request(ctx context.Context, ask policy.Bounds) policy.Request {
	allows := ask.Allows()
	if j.run.Typed { // a person says it with the command
		allows.HostNetwork, allows.WorkspaceWrite = j.run.HostNetwork, j.run.WriteWorkspace
	}
	return policy.Request{
		Principal: j.run.Principal, Session: j.run.Session, Subject: policy.Digest(j.digest()), Name: j.entry.Name, Origin: j.entry.Origin,
		Needs: append(j.needs(), j.approved(ctx)...), Ask: allows, Enabled: true, Bundled: j.bundled(), Typed: j.run.Typed,
	}
}

// isolated reports whether the sandbox isolates as much as the bounds demand.
func (j *job) isolated(ctx context.Context) error {
	if j.effect.MinTier == 0 {
		return nil
	}
	rep, err := j.scripts.Sandbox.Probe(ctx)
	if err == nil && int(rep.Tier) < j.effect.MinTier {
		err = &sandbox.UnsupportedError{Backend: rep.Backend, What: fmt.Sprintf("isolation of tier %d, as the skill or the operator demands: it has tier %v here", j.effect.MinTier, rep.Tier)}
	}
	if err != nil {
		return fmt.Errorf("%s: %w", j.owner(), err)
	}
	return nil
}

// refuse is the answer where policy said yes and it was withdrawn by now.
func (j *job) refuse(ctx context.Context, why error) error {
	ctx = context.WithoutCancel(ctx)
	q := j.asked
	q.Enabled = !j.gone(j.rt.catalog.Snapshot())
	d := policy.Decide(ctx, j.grants(), q)
	if d.Allow { // and given back
		d = policy.Decision{Code: policy.NotApproved, Reason: why.Error()}
	}
	if err := j.decided(ctx, d, q); err != nil {
		return err
	}
	return &RefusedError{j.entry.Name, d}
}

// decided keeps a decision.
func (j *job) decided(ctx context.Context, d policy.Decision, q policy.Request) error {
	if j.scripts.Audit == nil {
		return nil
	}
	if err := j.scripts.Audit.Append(ctx, d.Record(q)); err != nil {
		return fmt.Errorf("record the decision to run %s: %w", j.entry.Name, err)
	}
	return nil
}

// gone reports whether the skill, or one that it needs, may not be used.
func (j *job) gone(now *catalog.Snapshot) bool {
	return now.Disabled || slices.ContainsFunc(j.parts, func(p part) bool { return now.Hidden(p.entry.Key()) })
}

func (j *job) bundled() bool {
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
	return &policy.Memory{}
}

// hold returns a context that ends when the grant is withdrawn, or the skill is
// switched off or off the list.
func (j *job) hold(ctx context.Context, g *policy.Grant) (context.Context, func(), error) {
	held, cancel := context.WithCancelCause(ctx)
	withdrawn := func(why error) { cancel(fmt.Errorf("%w: %w", sandbox.ErrDisabled, why)) }
	unavailable := errors.New("it, or a skill that it needs, is no longer available")
	unsubscribe := j.rt.catalog.Subscribe(func(_, now *catalog.Snapshot) {
		if j.gone(now) {
			withdrawn(unavailable)
		}
	})
	// What was withdrawn while we looked was not seen by the subscription.
	if j.gone(j.rt.catalog.Snapshot()) {
		unsubscribe()
		cancel(nil)
		return nil, nil, j.refuse(ctx, unavailable)
	}
	stop := func() {}
	if g != nil {
		granted, end, err := policy.Hold(held, j.grants(), *g, 0)
		if err != nil {
			unsubscribe()
			cancel(nil)
			if ctx.Err() != nil {
				return nil, nil, context.Cause(ctx)
			}
			return nil, nil, j.refuse(ctx, err)
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
