package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/loadout-dev/loadout/session"
)

// LoadSkill loads a skill for the user. The skill may be one that the model
// cannot load. The model receives it with the next request. LoadSkill may be
// called during a turn.
//
// If the skill cannot be loaded, the result has [session.StateFailed] and the
// reasons. The error is [session.ErrClosed], the cause of ctx, or an error from
// the session's log.
func (a *Agent) LoadSkill(ctx context.Context, skill string, keep session.RetentionMode) (*session.LoadResult, error) {
	return a.session.Load(ctx, skill, &session.LoadOptions{Retention: keep, Direct: true})
}

// SetRetention is like [Agent.LoadSkill], but sets the given retention even if
// it is shorter than the current one.
func (a *Agent) SetRetention(ctx context.Context, skill string, keep session.RetentionMode) (*session.LoadResult, error) {
	return a.session.Load(ctx, skill, &session.LoadOptions{Retention: keep, Exact: true, Direct: true})
}

// PreloadSkill loads a skill at the start of a conversation and pins it. why is
// the reason to record. The result and the error are those of
// [Agent.LoadSkill].
func (a *Agent) PreloadSkill(ctx context.Context, skill, why string) (*session.LoadResult, error) {
	return a.session.Load(ctx, skill, &session.LoadOptions{Retention: session.RetainPinned, Direct: true, By: session.ByPreload, Why: why})
}

// InvokeSkill runs a turn in which the user invokes a skill with arguments,
// which replace its placeholders; see [session.LoadOptions]. It returns the
// errors of [Agent.RunTurn], or an error with the reasons if the skill cannot be
// loaded.
func (a *Agent) InvokeSkill(ctx context.Context, skill, arguments string, tell func(Event)) error {
	return a.withTurn(tell, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		r, err := t.session.Load(ctx, skill, &session.LoadOptions{Direct: true, Arguments: arguments})
		if err != nil {
			return err
		}
		if r.State == session.StateFailed {
			return errors.New(strings.Join(r.Problems, "; "))
		}
		if err := t.session.AddMessage(ctx, session.RoleUser, strings.TrimSpace("/"+r.Skill.ID.Name+" "+arguments)); err != nil {
			return err
		}
		if err := t.session.RecordUse(ctx, r.Skill.ID); err != nil {
			return err
		}
		return t.run(ctx)
	})
}
