package loadout

import (
	"context"

	"github.com/loadout-dev/loadout/policy"
)

// Leave is permission to use the servers that a skill brings. Release it when
// done.
type Leave struct {
	Skill  string
	Digest policy.Digest
	Allows policy.Bounds // what the skill asked for and was granted

	scripts *Scripts
	held    context.Context
	release func()
}

// Leave asks for leave to use what a skill brings, as [Runtime.Run] does to run a
// script: the skill has to be approved as it is now. Nothing is started. ctx
// bounds the asking only. The error is a [*RefusedError] where policy says no.
func (r *Runtime) Leave(ctx context.Context, skill string, who policy.Principal, session string) (*Leave, error) {
	if r.scripts == nil {
		return nil, ErrNoScripts
	}
	if who == (policy.Principal{}) {
		who = policy.Local()
	}
	j := &job{rt: r, scripts: r.scripts, run: Run{Skill: skill, Principal: who, Session: session}}
	defer j.close()
	if err := j.openSkill(ctx); err != nil {
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
	return &Leave{Skill: j.entry.Name, Digest: policy.Digest(j.digest()), Allows: allows, scripts: r.scripts, held: held, release: release}, nil
}

// Ended is closed when the leave was withdrawn or released.
func (l *Leave) Ended() <-chan struct{} { return l.held.Done() }

// Release gives the leave back. It is safe to call twice.
func (l *Leave) Release() { l.release() }

// Secret returns the value of a secret that the skill was granted; ok is false
// for all others, and where there is no value.
func (l *Leave) Secret(ctx context.Context, name string) (value string, ok bool) {
	if l.scripts.Secret == nil || len(policy.Intersect(l.Allows, policy.Bounds{Secrets: []string{name}}).Secrets) == 0 {
		return "", false
	}
	v, err := l.scripts.Secret(ctx, name)
	return v, err == nil && v != ""
}
