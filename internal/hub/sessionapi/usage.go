package sessionapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/llm"
)

// spentJSON is the usage of a conversation.
type spentJSON struct {
	Models     map[string]llm.Usage `json:"models" doc:"By model; models without token counts are left out"`
	Unreported map[string]int       `json:"untold,omitempty" doc:"Answers without token counts, by model"`
	Costs      map[string]float64   `json:"costs" doc:"In US dollars, for models with a known price"`
	Cost       *float64             `json:"cost,omitempty" doc:"Total of costs; absent if no price is known"`
	Unpriced   int                  `json:"unpriced,omitempty" doc:"Tokens of models without a known price, not included in cost"`
	Context    *contextJSON         `json:"context,omitempty" doc:"Use of the context window; absent before the first answer, after compaction, and if the model does not report tokens"`
}

// contextJSON describes the size of the last request to a model.
type contextJSON struct {
	Model   string `json:"model"`
	Request int    `json:"request" doc:"Tokens of the last request"`
	Answer  int    `json:"answer" doc:"Tokens of its answer, included in the next request"`
	Window  int    `json:"window,omitempty" doc:"Context window in tokens; absent if unknown"`
}

func (h *Handlers) getSessionUsage(ctx context.Context, in *SessionPath) (*api.Body[spentJSON], error) {
	spent, err := h.Chat.ModelUsage(ctx, account.FromContext(ctx), in.Session)
	if err != nil {
		return nil, err
	}
	out := spentJSON{Models: spent.Models, Unreported: spent.Unreported, Costs: map[string]float64{}}
	sum := 0.0
	for model, u := range spent.Models {
		cost, known := h.cost(model, u)
		if !known {
			out.Unpriced += u.Prompt() + u.Output
			continue
		}
		out.Costs[model] = cost
		sum += cost
	}
	if len(out.Costs) > 0 {
		out.Cost = &sum
	}
	if spent.Last != nil {
		out.Context = &contextJSON{spent.Model, spent.Last.Prompt(), spent.Last.Output, h.Window(spent.Model)}
	}
	return api.BodyOf(out, nil)
}
