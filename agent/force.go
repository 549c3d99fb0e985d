package agent

import (
	"slices"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
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

// Allowed are the calls that the skills in force want to be made unasked, as rules
// to put behind those of the person. standing says whether a skill is approved as it
// is now; nil believes what was so when it was loaded.
func Allowed(s *session.Session, standing func(session.ID) bool) policy.Rules {
	var texts []string
	for _, a := range s.Active() {
		if len(a.AllowedTools) > 0 && (standing == nil || standing(a.Skill)) {
			texts = append(texts, a.AllowedTools...)
		}
	}
	rules, _ := policy.AllowTools(texts) // what cannot be read allows nothing
	return rules
}
