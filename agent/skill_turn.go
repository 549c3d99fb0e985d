package agent

import (
	"context"
	"errors"
	"strings"

	"github.com/loadout-dev/loadout/session"
)

// InvokeSkill runs a turn in which the user invokes a skill with arguments,
// which replace the placeholders in its instructions; see
// [session.LoadOptions]. To load a skill for the user without a turn, call
// [session.Session.Load] with [session.LoadOptions.Direct]. InvokeSkill returns
// the errors of [Agent.RunTurn], or an error with the reasons if the skill
// cannot be loaded.
func (a *Agent) InvokeSkill(ctx context.Context, skill, arguments string, onEvent func(Event)) error {
	return a.withTurn(onEvent, func(t *turn) error {
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
		if err := t.addMessage(ctx, strings.TrimSpace("/"+r.Skill.ID.Name+" "+arguments)); err != nil {
			return err
		}
		if err := t.session.RecordUse(ctx, r.Skill.ID); err != nil {
			return err
		}
		return t.run(ctx)
	})
}
