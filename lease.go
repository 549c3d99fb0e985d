package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
)

// Lease is permission to use the servers that a skill provides. Release it when
// done.
type Lease struct {
	Skill  string
	Digest policy.Digest
	Bounds policy.Bounds // requested and granted

	scripts *Scripts
	lease   *execution.Lease
}

// AcquireLease acquires permission to use the servers of a skill. As for
// [Runtime.Run], the current version of the skill must be approved. It starts
// nothing. ctx limits only the check. The error is a [*RefusedError] if policy
// denies, and a [*ServersError] or [ErrNoServers] if the servers of the skill
// cannot be read. [Options.Approve] is asked before a refusal.
func (r *Runtime) AcquireLease(ctx context.Context, skill string, who policy.Principal, session string) (*Lease, error) {
	if r.scripts == nil {
		return nil, ErrNoScripts
	}
	c := r.scripts.caller(who, session)
	l, err := withApproval(ctx, r, skill, "", c, func() (*execution.Lease, error) {
		l, err := r.runner().AcquireLease(ctx, skill, c)
		return l, refused(err)
	})
	if err != nil {
		return nil, err
	}
	return &Lease{Skill: l.Skill, Digest: l.Digest, Bounds: l.Bounds, scripts: r.scripts, lease: l}, nil
}

// CanAcquireLease reports whether the skill is approved, so that
// [Runtime.AcquireLease] would succeed now. It records nothing.
func (r *Runtime) CanAcquireLease(ctx context.Context, skill string, who policy.Principal, session string) bool {
	return r.scripts != nil && r.runner().CanAcquireLease(ctx, skill, r.scripts.caller(who, session))
}

// Check checks the lease before use: the skill must exist with the same bytes,
// and the grant must still be valid. It records nothing.
func (l *Lease) Check(ctx context.Context) error { return refused(l.lease.Check(ctx)) }

// Done returns a channel that is closed when the lease is revoked or released.
func (l *Lease) Done() <-chan struct{} { return l.lease.Done() }

// Release ends the lease. It is safe to call twice.
func (l *Lease) Release() { l.lease.Release() }

// Secret returns the value of a secret that was granted to the skill. ok is
// false for other secrets and for those without a value.
func (l *Lease) Secret(ctx context.Context, name string) (value string, ok bool) {
	if len(l.Bounds.Intersect(policy.Bounds{Secrets: []string{name}}).Secrets) == 0 {
		return "", false
	}
	v, err := l.scripts.secret(ctx, l.Digest, name)
	return v, err == nil && v != ""
}
