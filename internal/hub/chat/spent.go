package chat

import (
	"context"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Spent is what the models of a conversation have taken.
type Spent struct {
	Models map[string]llm.Usage // by their names
	// Untold are the answers whose tokens no vendor told, by the names of their models.
	Untold map[string]int
	// Last is what the last request took, and Model the model of it: what is said next comes
	// on top of that. There is none before the first answer, after the conversation was put
	// in short, and where no vendor told it.
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
	out := &Spent{Models: map[string]llm.Usage{}, Untold: map[string]int{}}
	add := func(model string, u *session.Usage) {
		if !told(u) {
			out.Untold[model]++
			return
		}
		out.Models[model] = out.Models[model].Add(llm.Usage(*u))
	}
	for _, s := range steps {
		switch {
		case s.Message != nil && s.Message.Role == session.RoleAssistant:
			add(s.Message.Model, s.Message.Usage)
			out.Last, out.Model = nil, ""
			if told(s.Message.Usage) {
				last := llm.Usage(*s.Message.Usage)
				out.Last, out.Model = &last, s.Message.Model
			}
		case s.Compacted != nil:
			out.Last, out.Model = nil, ""
			if s.Compacted.Model != "" {
				add(s.Compacted.Model, s.Compacted.Usage)
			}
		}
	}
	return out, nil
}
