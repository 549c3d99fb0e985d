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
	return a.RunMessage(ctx, UserMessage{Skill: skill, Text: arguments}, onEvent)
}

// invokeSkill loads the skill that a message names and adds the message.
func (t *turn) invokeSkill(ctx context.Context, m UserMessage) error {
	r, err := t.session.Load(ctx, m.Skill, &session.LoadOptions{Direct: true, Arguments: m.Text})
	if err != nil {
		return err
	}
	if r.State == session.StateFailed {
		return errors.New(strings.Join(r.Problems, "; "))
	}
	m.Text = strings.TrimSpace("/" + r.Skill.ID.Name + " " + m.Text)
	if err := t.addMessage(ctx, m); err != nil {
		return err
	}
	return t.session.RecordUse(ctx, r.Skill.ID)
}
