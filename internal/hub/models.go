package hub

import (
	"cmp"
	"context"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/llm"
)

// priceJSON is what a model costs.
type priceJSON struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// modelJSON is a model that somebody may choose.
type modelJSON struct {
	Own       bool       `json:"own,omitempty" doc:"The hub's own, which an agent without a Model has"`
	Name      string     `json:"name,omitempty" doc:"Of the Model, for the modelRef of a Bot; not there for the hub's own"`
	Namespace string     `json:"namespace,omitempty" doc:"Of the Model"`
	ID        string     `json:"id,omitempty"`
	Vendor    string     `json:"vendor" doc:"Whose language it speaks: anthropic, openai or demo"`
	Model     string     `json:"model,omitempty" doc:"As the vendor calls it"`
	BaseURL   string     `json:"base_url,omitempty" doc:"Where it answers; not there where that is the vendor's own address, or the operator's"`
	Digest    string     `json:"digest,omitempty" doc:"Of the Model as it is now, to which a secret is granted as its key"`
	Key       string     `json:"key" enum:"operator,none,granted,missing" doc:"operator: the hub has it; none: it names none; granted: you have one for it; missing: it names one that is not there for you"`
	Price     *priceJSON `json:"price,omitempty" doc:"In US dollars a million tokens; not there where it is not known"`
	Window    int        `json:"window,omitempty" doc:"How many tokens it takes at once; not there where that is not known"`
}

func (h *Hub) modelsAPI(api huma.API) {
	add(h, api, operation("list-models", "GET", "/models", "Models that you may choose: the hub's own, on the first page, then those that people defined, by name"), h.listModels)
}

func (h *Hub) listModels(ctx context.Context, in *Paging) (*body[listed[modelJSON]], error) {
	found, next, err := h.kinds.Models(ctx, account.FromContext(ctx), in.page())
	out, err := page(found, next, err, h.modelOf)
	if err != nil || in.After != "" {
		return out, err
	}
	own, err := h.opts.Model(nil, "")
	if err != nil {
		return nil, err
	}
	vendor, name, _ := strings.Cut(own.Name(), ":")
	first := h.worth(own.Name(), modelJSON{Own: true, Vendor: vendor, Model: name, Key: "operator"})
	out.Body.Items = append([]modelJSON{first}, out.Body.Items...)
	return out, nil
}

func (h *Hub) modelOf(m kinds.OfferedModel) modelJSON {
	out := modelJSON{Name: m.Name, Namespace: cmp.Or(m.Namespace, ownNamespace), ID: m.ID, Vendor: m.Vendor, Model: m.Model.Model, BaseURL: m.BaseURL, Digest: string(m.Digest), Key: "none"}
	switch {
	case m.HasKey:
		out.Key = "granted"
	case m.NeedsKey:
		out.Key = "missing"
	}
	return h.worth(m.Vendor+":"+m.Model.Model, out)
}

// worth adds what is known of a model by its name, as it is counted.
func (h *Hub) worth(name string, m modelJSON) modelJSON {
	m.Window = h.window(name)
	if h.opts.Price == nil {
		return m
	}
	if p, known := h.opts.Price(name); known {
		m.Price = priceOf(p)
	}
	return m
}

func priceOf(p llm.Price) *priceJSON {
	return &priceJSON{p.Input, p.Output, p.CacheRead, p.CacheWrite}
}
