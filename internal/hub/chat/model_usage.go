package chat

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/llm"
)

// ModelUsage is the number of tokens used in a conversation, by model.
type ModelUsage struct {
	Models map[string]llm.Usage // usage by model name
	// Unreported counts the responses whose usage was not reported, by model
	// name.
	Unreported map[string]int
	// Last is the usage of the last request on the current branch, and Model is
	// its model. Last shows how much of the context is used. It is nil before the
	// first response, after compaction, and if the provider reported no usage.
	Last  *llm.Usage
	Model string
}

// ModelUsage returns the token usage of all branches of the conversation,
// computed from its transcript.
func (e *Engine) ModelUsage(ctx context.Context, p account.Principal, id string) (*ModelUsage, error) {
	if _, err := e.authorize(ctx, p, account.SessionRead, id); err != nil {
		return nil, err
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0)
	if err != nil {
		return nil, err
	}
	out := &ModelUsage{Models: map[string]llm.Usage{}, Unreported: map[string]int{}}
	add := func(model string, u *llm.Usage) {
		if !usage.IsReported(u) {
			out.Unreported[model]++
			return
		}
		out.Models[model] = out.Models[model].Add(*u)
	}
	for _, s := range steps {
		switch {
		case s.Message != nil && s.Message.Role == llm.Assistant:
			add(s.Message.Model, s.Message.Usage)
		case s.Compacted != nil && s.Compacted.Model != "":
			add(s.Compacted.Model, s.Compacted.Usage)
		}
	}
	for _, s := range slices.Backward(currentPath(steps)) {
		if s.Compacted != nil {
			break
		}
		if m := s.Message; m != nil && m.Role == llm.Assistant {
			if usage.IsReported(m.Usage) {
				out.Last, out.Model = m.Usage, m.Model
			}
			break
		}
	}
	return out, nil
}
