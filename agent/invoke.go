package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/loadout-dev/loadout/session"
)

// Load loads a skill for the person: also one that no model may load. The model is
// told of it before what is said next. The result says what it came to.
func (a *Agent) Load(ctx context.Context, skill string, keep session.Keep) (*session.Result, error) {
	return a.session.LoadAs(ctx, skill, session.LoadOptions{Keep: keep, Direct: true})
}

// Keep is [Agent.Load] where the skill is to stay in force for exactly so long, also where
// it was to stay longer.
func (a *Agent) Keep(ctx context.Context, skill string, keep session.Keep) (*session.Result, error) {
	return a.session.LoadAs(ctx, skill, session.LoadOptions{Keep: keep, Set: true, Direct: true})
}

// Preload loads a skill that is in force from the start, for good; why says who wants
// that.
func (a *Agent) Preload(ctx context.Context, skill, why string) (*session.Result, error) {
	return a.session.LoadAs(ctx, skill, session.LoadOptions{Keep: session.KeepPinned, Direct: true, By: session.ByPreload, Why: why})
}

// Invoke is a turn in which the person says that a skill is to be used, with the
// arguments that they typed after its name. The error is as of [Agent.Turn], or says
// why the skill cannot be loaded.
func (a *Agent) Invoke(ctx context.Context, skill, arguments string, tell func(Event)) error {
	return a.lead(tell, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		r, err := t.session.LoadAs(ctx, skill, session.LoadOptions{Direct: true, Arguments: arguments})
		if err != nil {
			return err
		}
		if r.State == session.StateFailed {
			return errors.New(strings.Join(r.Problems, "; "))
		}
		if err := t.session.Say(ctx, session.RoleUser, strings.TrimSpace("/"+r.Material.ID.Name+" "+arguments)); err != nil {
			return err
		}
		if err := t.session.Use(ctx, r.Material.ID); err != nil {
			return err
		}
		return t.run(ctx)
	})
}
