package hub

import (
	"context"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/llm"
)

// spentJSON is what models have taken in a conversation.
type spentJSON struct {
	Models   map[string]llm.Usage `json:"models" doc:"By the name of the model; one that told no tokens is not in it"`
	Untold   map[string]int       `json:"untold,omitempty" doc:"How many answers each model gave without telling their tokens, which are not known"`
	Costs    map[string]float64   `json:"costs" doc:"In US dollars, of the models whose price is known"`
	Cost     *float64             `json:"cost,omitempty" doc:"Of all of these; not there where no price is known"`
	Unpriced int                  `json:"unpriced,omitempty" doc:"Tokens of models whose price is not known, which cost has not"`
	Context  *contextJSON         `json:"context,omitempty" doc:"What is in use of what the model takes at once; not there before the first answer, after the conversation was put in short, and where the model does not tell it"`
}

// contextJSON is how much a model was sent last.
type contextJSON struct {
	Model   string `json:"model"`
	Request int    `json:"request" doc:"Tokens of the last request"`
	Answer  int    `json:"answer" doc:"Tokens of its answer, which are part of the next request"`
	Window  int    `json:"window,omitempty" doc:"How many tokens the model takes at once; not there where that is not known"`
}

func (h *Hub) getSessionUsage(ctx context.Context, in *SessionPath) (*body[spentJSON], error) {
	spent, err := h.chat.Spent(ctx, account.FromContext(ctx), in.Session)
	if err != nil {
		return nil, err
	}
	out := spentJSON{Models: spent.Models, Untold: spent.Untold, Costs: map[string]float64{}}
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
		out.Context = &contextJSON{spent.Model, spent.Last.Prompt(), spent.Last.Output, h.window(spent.Model)}
	}
	return answered(out, nil)
}

// window is how many tokens a model takes at once, 0 where that is not known.
func (h *Hub) window(model string) int {
	if h.opts.Window == nil {
		return 0
	}
	return h.opts.Window(model)
}
