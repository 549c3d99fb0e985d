package execution

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/decision"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/sandbox"
)

// A Lease is a permission to use a skill's servers. The caller must release it.
type Lease struct {
	Skill  string
	Digest policy.Digest
	Bounds policy.Bounds // requested and granted
	// Isolated is set if servers run in a sandbox without network access and
	// without secrets, and the caller gives them no workspace. Secrets in the
	// configuration of a server are not considered.
	Isolated bool

	needs   []policy.Need // what the grant covers; nil without a grant
	auth    *authorizer
	key     string // catalog key of the skill
	request decision.RunRequest
	ctx     context.Context
	release func()
	runner  *Runner
}

// AcquireLease acquires a lease for a skill's servers, without starting them.
// The lease outlives ctx. If the policy denies it, and the user does not
// approve the skill when asked, the error is a [*RefusedError] or the result of
// [Options.Refused]. If r is nil, it is [ErrNoScripts].
func (r *Runner) AcquireLease(ctx context.Context, ref string, c Caller) (*Lease, error) {
	if r == nil {
		return nil, ErrNoScripts
	}
	c = r.caller(c)
	return withApproval(ctx, r, Attempt{Skill: ref, Caller: c}, func() (*Lease, error) { return r.acquireLease(ctx, ref, c) })
}

// acquireLease is like AcquireLease, but does not ask for approval.
func (r *Runner) acquireLease(ctx context.Context, ref string, c Caller) (*Lease, error) {
	s, err := openSkill(ctx, r.opts.Catalog, ref)
	if err != nil {
		return nil, err
	}
	defer s.close()
	if _, err := r.opts.Services(s.entry, s.skill); err != nil {
		return nil, err
	}
	p, err := r.auth.authorize(context.WithoutCancel(ctx), s, c)
	if err != nil {
		return nil, err
	}
	bounds := p.bounds
	if p.grant != nil { // servers may use secrets that the scripts do not request
		bounds.Secrets = p.grant.Permissions.Secrets
	}
	l := &Lease{Skill: s.name, Digest: s.digest, Bounds: bounds, Isolated: r.auth.isolates(ctx, p), auth: r.auth, key: s.entry.Key(), request: p.request, ctx: p.ctx, release: p.release, runner: r}
	if p.grant != nil {
		l.needs = p.grant.Needs
	}
	return l, nil
}

// isolates reports whether the sandbox confines commands with the permission p
// to their own files. It does not consider secrets in the configuration of a
// server.
func (a *authorizer) isolates(ctx context.Context, p *authorization) bool {
	switch {
	case a.sandbox == nil, p.hostNetwork, len(p.bounds.Network)+len(p.bounds.Secrets)+len(p.inject) > 0:
		return false
	case p.grant != nil && p.grant.Permissions.Unsandboxed:
		return false
	}
	report, err := a.sandbox.Probe(ctx)
	return err == nil && report.Tier >= sandbox.Confined
}

// CanAcquireLease reports whether [Runner.AcquireLease] would currently succeed
// without asking the user. It does not check whether the skill's servers can be
// read or whether the sandbox provides enough isolation. It records nothing.
func (r *Runner) CanAcquireLease(ctx context.Context, ref string, c Caller) bool {
	return r.canAcquireLease(ctx, ref, c, func(*openedSkill) bool { return true })
}

// IsTextApproved is like [Runner.CanAcquireLease], but returns false if the
// skill's SKILL.md does not have the given digest: "sha256:" and the hex
// SHA-256 of the file.
func (r *Runner) IsTextApproved(ctx context.Context, ref, digest string, c Caller) bool {
	hash, ok := strings.CutPrefix(digest, "sha256:")
	return ok && r.canAcquireLease(ctx, ref, c, func(s *openedSkill) bool { return hasSkillFile(s.main().manifest, hash) })
}

func (r *Runner) canAcquireLease(ctx context.Context, ref string, c Caller, matches func(*openedSkill) bool) bool {
	if r == nil {
		return false
	}
	s, err := openSkill(ctx, r.opts.Catalog, ref)
	if err != nil {
		return false
	}
	defer s.close()
	return matches(s) && r.auth.isAllowed(ctx, s, r.caller(c))
}

// Check returns an error if the skill was removed or changed, or if the grant
// is no longer valid. Call it before each use of a server. It records nothing.
// The error matches [execute.ErrDisabled] if the lease was revoked, and
// [context.Canceled] if it was released.
func (l *Lease) Check(ctx context.Context) error {
	if l.ctx.Err() != nil {
		return context.Cause(l.ctx)
	}
	c := l.auth.catalog
	e, err := c.Resolve(ctx, l.key)
	if err != nil {
		return err
	}
	m, err := c.CompleteManifest(ctx, e)
	if err != nil {
		return err
	}
	if now := decision.SubjectOf(e.Name, e.Origin, m.Digest()); now != l.Digest {
		return fmt.Errorf("skill %s changed: digest was %s, is now %s", l.Skill, l.Digest.Short(), now.Short())
	}
	q := l.request
	q.Enabled = !c.Snapshot().Disabled
	if d := decision.ForRun(ctx, l.auth.grants, q); d.Effect != policy.Allow {
		return l.runner.convertRefusal(&RefusedError{l.Skill, d.Decision})
	}
	return nil
}

// Done returns a channel that is closed when the lease is revoked or released.
// The revocation of a grant closes it within about 200 ms.
func (l *Lease) Done() <-chan struct{} { return l.ctx.Done() }

// Release ends the lease. It may be called more than once.
func (l *Lease) Release() { l.release() }

// Secret returns the value of a secret that was granted to the skill. ok is
// false if the secret was not granted, cannot be read or has no value. Secret
// does not check whether the lease is still valid; see [Lease.Check].
func (l *Lease) Secret(ctx context.Context, name string) (value string, ok bool) {
	if len(l.Bounds.Intersect(policy.Bounds{Secrets: []string{name}}).Secrets) == 0 {
		return "", false
	}
	v, err := l.runner.opts.Secret(ctx, l.Digest, name)
	return v, err == nil && v != ""
}

// PermitsVariable reports whether the skill was approved to send a platform
// value to a target. It does not check whether the lease is still valid; see
// [Lease.Check].
func (l *Lease) PermitsVariable(name, target string) bool {
	return slices.Contains(l.needs, decision.VariableNeed(name, target))
}
