package loadout

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/policy"
)

// Lease is permission to use the servers that a skill provides. Release it when
// done.
type Lease struct {
	Skill  string
	Digest policy.Digest
	Bounds policy.Bounds // requested and granted

	rt      *Runtime
	scripts *Scripts
	key     string // of the skill
	asked   policy.Request
	held    context.Context
	release func()
}

// AcquireLease acquires permission to use the servers of a skill. As for
// [Runtime.Run], the current version of the skill must be approved. It starts
// nothing. ctx limits only the check. The error is a [*RefusedError] if policy
// denies, and a [*ServersError] or [ErrNoServers] if the servers of the skill
// cannot be read.
func (r *Runtime) AcquireLease(ctx context.Context, skill string, who policy.Principal, session string) (*Lease, error) {
	if r.scripts == nil {
		return nil, ErrNoScripts
	}
	j := r.leaseJob(skill, who, session)
	defer j.close()
	if err := j.openSkill(ctx); err != nil {
		return nil, err
	}
	if _, err := r.requestedServices(j.entry, j.skill); err != nil {
		return nil, err
	}
	held, release, err := j.authorize(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	allows := j.effective
	if j.granted != nil { // servers may name secrets that the scripts do not request
		allows.Secrets = j.granted.Permissions.Secrets
	}
	return &Lease{Skill: j.entry.Name, Digest: policy.Digest(j.digest()), Bounds: allows, rt: r, scripts: r.scripts, key: j.entry.Key(), asked: j.policyRequest, held: held, release: release}, nil
}

func (r *Runtime) leaseJob(skill string, who policy.Principal, session string) *job {
	if who == (policy.Principal{}) {
		who = r.scripts.principal()
	}
	return &job{rt: r, scripts: r.scripts, run: Run{Skill: skill, Principal: who, Session: session}}
}

// CanAcquireLease reports whether the skill is approved, so that
// [Runtime.AcquireLease] would succeed now. It records nothing.
func (r *Runtime) CanAcquireLease(ctx context.Context, skill string, who policy.Principal, session string) bool {
	if r.scripts == nil {
		return false
	}
	j := r.leaseJob(skill, who, session)
	defer j.close()
	if j.openSkill(ctx) != nil {
		return false
	}
	ask, _, _, err := r.requestedBounds(j.skill)
	return err == nil && policy.Decide(ctx, j.grants(), j.request(ctx, ask)).Allow
}

// Check checks the lease before use: the skill must exist with the same bytes,
// and the grant must still be valid. It records nothing.
func (l *Lease) Check(ctx context.Context) error {
	if l.held.Err() != nil {
		return context.Cause(l.held)
	}
	e, err := l.rt.catalog.Resolve(ctx, l.key)
	if err != nil {
		return err
	}
	m, err := l.rt.catalog.CompleteManifest(ctx, e)
	if err != nil {
		return err
	}
	if now := policy.Digest(m.Digest()); now != l.Digest {
		return fmt.Errorf("skill %s changed: it was %s and is %s", l.Skill, l.Digest.Short(), now.Short())
	}
	var grants policy.Store = &policy.MemoryStore{}
	if l.scripts.Grants != nil {
		grants = l.scripts.Grants
	}
	q := l.asked
	q.Enabled = !l.rt.catalog.Snapshot().Disabled
	if d := policy.Decide(ctx, grants, q); !d.Allow {
		return &RefusedError{l.Skill, d}
	}
	return nil
}

// Done returns a channel that is closed when the lease is revoked or released.
func (l *Lease) Done() <-chan struct{} { return l.held.Done() }

// Release ends the lease. It is safe to call twice.
func (l *Lease) Release() { l.release() }

// Secret returns the value of a secret that was granted to the skill. ok is
// false for other secrets and for those without a value.
func (l *Lease) Secret(ctx context.Context, name string) (value string, ok bool) {
	if len(policy.Intersect(l.Bounds, policy.Bounds{Secrets: []string{name}}).Secrets) == 0 {
		return "", false
	}
	v, err := l.scripts.secret(ctx, l.Digest, name)
	return v, err == nil && v != ""
}
