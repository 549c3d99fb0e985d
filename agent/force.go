package agent

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/llm"
)

// model is that of the next request: what the skill wants that was loaded last of
// those in force that want one, else the conversation's own.
func (t *turn) model() llm.Model {
	if t.opts.Model == nil {
		return t.Model()
	}
	for _, a := range slices.Backward(t.session.Active()) {
		if a.Model == "" || a.Model == "inherit" {
			continue
		}
		m, err := t.opts.Model(a.Model)
		if err == nil && m != nil {
			return m
		}
		text := "the skill " + a.Skill.Name + " wants the model " + a.Model + ", which is not configured"
		if err != nil {
			text += ": " + err.Error()
		}
		t.note(text)
	}
	return t.Model()
}

// note tells a person something, once in a conversation.
func (t *turn) note(text string) {
	t.Agent.mu.Lock()
	known := t.noted[text]
	t.noted[text] = true
	t.Agent.mu.Unlock()
	if !known {
		t.say(Event{Type: Notice, Text: text})
	}
}

// note tells the person of the conversation that a context is of something.
func note(ctx context.Context, text string) {
	if m, ok := ctx.Value(makingKey{}).(*making); ok {
		m.turn.say(Event{Type: Notice, Text: text})
	}
}
