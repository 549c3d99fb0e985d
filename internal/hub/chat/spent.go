package chat

import (
	"context"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/llm"
)

// Spent is what the models of a conversation have taken.
type Spent struct {
	Models map[string]llm.Usage // by their names
	// Last is what the last request took, and Model the model of it: what is said next comes
	// on top of that. There is none before the first answer, and after the conversation was
	// put in short.
	Last  *llm.Usage
	Model string
}

// Spent returns what the models of a conversation have taken.
func (e *Engine) Spent(ctx context.Context, p account.Principal, id string) (*Spent, error) {
	if _, err := e.may(ctx, p, account.SessionRead, id); err != nil {
		return nil, err
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0)
	if err != nil {
		return nil, err
	}
	out := &Spent{Models: map[string]llm.Usage{}}
	add := func(model string, u llm.Usage) { out.Models[model] = out.Models[model].Add(u) }
	for _, s := range steps {
		switch {
		case s.Message != nil && s.Message.Usage != nil:
			last := llm.Usage(*s.Message.Usage)
			add(s.Message.Model, last)
			out.Last, out.Model = &last, s.Message.Model
		case s.Compacted != nil:
			out.Last, out.Model = nil, ""
			if s.Compacted.Usage != nil {
				add(s.Compacted.Model, llm.Usage(*s.Compacted.Usage))
			}
		}
	}
	return out, nil
}
