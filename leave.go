package loadout

import (
	"context"
	"fmt"

	"github.com/loadout-dev/loadout/policy"
)

// Leave is permission to use the servers that a skill brings. Release it when
// done.
type Leave struct {
	Skill  string
	Digest policy.Digest
	Allows policy.Bounds // what the skill asked for and was granted

	rt      *Runtime
	scripts *Scripts
	key     string // of the skill
	asked   policy.Request
	held    context.Context
	release func()
}

// Leave asks for leave to use what a skill brings, as [Runtime.Run] does to run a
// script: the skill has to be approved as it is now. Nothing is started. ctx
// bounds the asking only. The error is a [*RefusedError] where policy says no, and
// a [*ServersError] or [ErrNoServers] where the servers cannot be told.
func (r *Runtime) Leave(ctx context.Context, skill string, who policy.Principal, session string) (*Leave, error) {
	if r.scripts == nil {
		return nil, ErrNoScripts
	}
	j := r.leaveJob(skill, who, session)
	defer j.close()
	if err := j.openSkill(ctx); err != nil {
		return nil, err
	}
	if _, err := r.services(j.entry, j.skill); err != nil {
		return nil, err
	}
	held, release, err := j.permit(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	allows := j.effect
	if j.granted != nil { // its servers name secrets that are no wish of its scripts
		allows.Secrets = j.granted.Allows.Secrets
	}
	return &Leave{Skill: j.entry.Name, Digest: policy.Digest(j.digest()), Allows: allows, rt: r, scripts: r.scripts, key: j.entry.Key(), asked: j.asked, held: held, release: release}, nil
}

func (r *Runtime) leaveJob(skill string, who policy.Principal, session string) *job {
	if who == (policy.Principal{}) {
		who = r.scripts.principal()
	}
	return &job{rt: r, scripts: r.scripts, run: Run{Skill: skill, Principal: who, Session: session}}
}

// WouldLeave reports whether [Runtime.Leave] would be given now, as far as approval
// goes. Nobody wants anything yet, and nothing is recorded.
func (r *Runtime) WouldLeave(ctx context.Context, skill string, who policy.Principal, session string) bool {
	if r.scripts == nil {
		return false
	}
	j := r.leaveJob(skill, who, session)
	defer j.close()
	if j.openSkill(ctx) != nil {
		return false
	}
	ask, _, _, err := r.ask(j.skill)
	return err == nil && policy.Decide(ctx, j.grants(), j.request(ctx, ask)).Allow
}

// Check asks again, before the leave is used: the skill has to be there, with the
// same bytes, and the grant has to stand. Nothing is recorded.
func (l *Leave) Check(ctx context.Context) error {
	if l.held.Err() != nil {
		return context.Cause(l.held)
	}
	e, err := l.rt.catalog.Resolve(ctx, l.key)
	if err != nil {
		return err
	}
	m, err := l.rt.catalog.WholeManifest(ctx, e)
	if err != nil {
		return err
	}
	if now := policy.Digest(m.Digest()); now != l.Digest {
		return fmt.Errorf("skill %s changed: it was %s and is %s", l.Skill, l.Digest.Short(), now.Short())
	}
	var grants policy.Store = &policy.Memory{}
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

// Ended is closed when the leave was withdrawn or released.
func (l *Leave) Ended() <-chan struct{} { return l.held.Done() }

// Release gives the leave back. It is safe to call twice.
func (l *Leave) Release() { l.release() }

// Secret returns the value of a secret that the skill was granted; ok is false
// for all others, and where there is no value.
func (l *Leave) Secret(ctx context.Context, name string) (value string, ok bool) {
	if len(policy.Intersect(l.Allows, policy.Bounds{Secrets: []string{name}}).Secrets) == 0 {
		return "", false
	}
	v, err := l.scripts.secret(ctx, l.Digest, name)
	return v, err == nil && v != ""
}
