package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/policy"
)

// Lease is permission to use the servers that a skill provides. It is safe for
// concurrent use. The caller must release it.
type Lease struct {
	Skill  string        // name of the skill
	Digest policy.Digest // digest of the skill's files
	Bounds policy.Bounds // bounds that were requested and granted
	// Isolated is set if the skill's servers run in a sandbox without network
	// access and without secrets, and the caller gives them no
	// [Service.Workspace]. It may be set even if a server's configuration
	// contains secrets.
	Isolated bool

	scripts *Scripts
	lease   *execution.Lease
}

// AcquireLease acquires permission to use a skill's servers, without starting
// them. As for [Runtime.Run], the current version of the skill must be
// approved. If it is not, [Options.Approve] is called before the request is
// refused. ctx applies only to this call, not to the lease. If principal is the
// zero value, [Scripts.Principal] applies. session is "" outside a session.
//
// The error is a [*RefusedError] if policy denies the request, and a
// [*ServersError] if the skill's servers cannot be read. It is [ErrNoScripts]
// if [Options.Scripts] is nil, and that of [Runtime.Fetch] if the skill cannot
// be read. Without [Scripts.ReadServers], a skill with servers is an error.
func (r *Runtime) AcquireLease(ctx context.Context, skill string, principal policy.Principal, session string) (*Lease, error) {
	if r.scripts == nil {
		return nil, ErrNoScripts
	}
	c := r.scripts.caller(principal, session)
	l, err := withApproval(ctx, r, skill, "", c, func() (*execution.Lease, error) {
		l, err := r.runner().AcquireLease(ctx, skill, c)
		return l, refused(err)
	})
	if err != nil {
		return nil, err
	}
	return &Lease{Skill: l.Skill, Digest: l.Digest, Bounds: l.Bounds, Isolated: l.Isolated, scripts: r.scripts, lease: l}, nil
}

// CanAcquireLease reports whether policy allows [Runtime.AcquireLease] now,
// without asking the user. It does not check whether the skill's servers can be
// read or the sandbox isolates enough. It does not record a decision.
func (r *Runtime) CanAcquireLease(ctx context.Context, skill string, principal policy.Principal, session string) bool {
	return r.scripts != nil && r.runner().CanAcquireLease(ctx, skill, r.scripts.caller(principal, session))
}

// Check returns an error if the skill's files changed or the grant is no longer
// valid. Call it before each use of the lease. It does not record a decision.
// The error is a [*RefusedError] if policy now denies the use. It matches
// [sandbox.ErrDisabled] if the lease was revoked, and [context.Canceled] if it
// was released.
func (l *Lease) Check(ctx context.Context) error { return refused(l.lease.Check(ctx)) }

// Done returns a channel that is closed when the lease is revoked or released.
// The revocation of a grant closes it within about 200 ms.
func (l *Lease) Done() <-chan struct{} { return l.lease.Done() }

// Release ends the lease. It may be called more than once.
func (l *Lease) Release() { l.lease.Release() }

// Secret returns the value of a secret that was granted to the skill. ok is
// false if the secret was not granted, cannot be read or has no value. Secret
// does not check whether the lease is still valid; see [Lease.Check].
func (l *Lease) Secret(ctx context.Context, name string) (value string, ok bool) {
	if len(l.Bounds.Intersect(policy.Bounds{Secrets: []string{name}}).Secrets) == 0 {
		return "", false
	}
	v, err := l.scripts.secret(ctx, l.Digest, name)
	return v, err == nil && v != ""
}
