package agentapi

import (
	"cmp"
	"context"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/usage"
)

// priceJSON is the price of a model per million tokens.
type priceJSON struct {
	Input      float64 `json:"input"`
	Output     float64 `json:"output"`
	CacheRead  float64 `json:"cache_read"`
	CacheWrite float64 `json:"cache_write"`
}

// modelJSON is a model that the user may select.
type modelJSON struct {
	Own       bool       `json:"own,omitempty" doc:"The hub's own model, for agents without a Model"`
	Name      string     `json:"name,omitempty" doc:"Name of the Model, for modelRef of a Bot; absent for the hub's own"`
	Namespace string     `json:"namespace,omitempty" doc:"Namespace of the Model"`
	ID        string     `json:"id,omitempty"`
	Vendor    string     `json:"vendor" doc:"API of the model: anthropic, openai or demo"`
	Model     string     `json:"model,omitempty" doc:"Name at the vendor"`
	BaseURL   string     `json:"base_url,omitempty" doc:"Absent for the address of the vendor or the operator"`
	Digest    string     `json:"digest,omitempty" doc:"Digest of the current Model; a secret is granted to it as its key"`
	Key       string     `json:"key" enum:"operator,none,granted,missing" doc:"operator: provided by the hub; none: not needed; granted: you have one; missing: needed, but you have none"`
	Price     *priceJSON `json:"price,omitempty" doc:"US dollars per million tokens; absent if unknown"`
	Window    int        `json:"window,omitempty" doc:"Context window in tokens; absent if unknown"`
}

func (h *Handlers) modelsAPI() {
	api.Add(h.Server, api.Operation("list-models", "GET", "/models", "List the models that you may choose: the hub's own on the first page, then the defined ones by name"), h.listModels)
}

func (h *Handlers) listModels(ctx context.Context, in *api.Paging) (*api.Body[api.ListBody[modelJSON]], error) {
	found, next, err := h.Agents.ListModels(ctx, account.FromContext(ctx), in.Page())
	out, err := api.PageOf(found, next, err, h.newModelJSON)
	if err != nil || in.After != "" {
		return out, err
	}
	own, err := h.Model(nil, "")
	if err != nil {
		return nil, err
	}
	vendor, name, _ := strings.Cut(own.Name(), ":")
	first := h.withPrice(own.Name(), modelJSON{Own: true, Vendor: vendor, Model: name, Key: "operator"})
	out.Body.Items = append([]modelJSON{first}, out.Body.Items...)
	return out, nil
}

func (h *Handlers) newModelJSON(m agents.AvailableModel) modelJSON {
	out := modelJSON{Name: m.Name, Namespace: cmp.Or(m.Namespace, api.OwnNamespace), ID: m.ID, Vendor: m.Vendor, Model: m.Model.Model, BaseURL: m.BaseURL, Digest: string(m.Digest), Key: "none"}
	switch {
	case m.HasKey:
		out.Key = "granted"
	case m.NeedsKey:
		out.Key = "missing"
	}
	return h.withPrice(m.Vendor+":"+m.Model.Model, out)
}

// withPrice returns m with the price and the context window of the named model.
func (h *Handlers) withPrice(name string, m modelJSON) modelJSON {
	m.Window = h.Window(name)
	if p, known := h.Price(name); known {
		m.Price = newPriceJSON(p)
	}
	return m
}

func newPriceJSON(p usage.Price) *priceJSON {
	return &priceJSON{p.Input, p.Output, p.CacheRead, p.CacheWrite}
}
