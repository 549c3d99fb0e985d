package agent

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/llm"
)

// currentModel returns the model for the next request. It is the model
// requested by the most recently loaded active skill that requests one, or else
// the conversation's model.
func (t *turn) currentModel() llm.Model {
	if t.opts.SkillModel == nil {
		return t.Model()
	}
	for _, a := range slices.Backward(t.session.Active()) {
		if a.Model == "" || a.Model == "inherit" {
			continue
		}
		m, err := t.opts.SkillModel(a.Model)
		if err == nil && m != nil {
			return m
		}
		text := "the skill " + a.Skill.Name + " wants the model " + a.Model + ", which is not configured"
		if err != nil {
			text += ": " + err.Error()
		}
		t.notifyOnce(text)
	}
	return t.Model()
}

// notifyOnce shows a notice to the user at most once per conversation.
func (t *turn) notifyOnce(text string) {
	t.Agent.mu.Lock()
	known := t.noted[text]
	t.noted[text] = true
	t.Agent.mu.Unlock()
	if !known {
		t.emit(Event{Type: Notice, Text: text})
	}
}

// emitNotice shows a notice to the user in the conversation of the call that
// ctx belongs to.
func emitNotice(ctx context.Context, text string) {
	if m, ok := ctx.Value(runningCallKey{}).(*runningCall); ok {
		m.turn.emit(Event{Type: Notice, Text: text})
	}
}
