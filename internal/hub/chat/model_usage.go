package chat

import (
	"context"

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
	// Last is the usage of the last request, and Model is its model. Last shows
	// how much of the context is used. It is nil before the first response, after
	// compaction, and if the provider reported no usage.
	Last  *llm.Usage
	Model string
}

// ModelUsage returns the conversation's token usage, computed from its
// transcript.
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
			out.Last, out.Model = nil, ""
			if usage.IsReported(s.Message.Usage) {
				last := *s.Message.Usage
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
