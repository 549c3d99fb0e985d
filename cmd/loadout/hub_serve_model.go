package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

// newHubModels returns a function that creates the hub's models: the configured
// one, and those that users define. The configured key is used only for the
// configured model. Other models have their own key, or none.
func (a *app) newHubModels(ctx context.Context, c *config.Config, private []netip.Prefix) (func(*agents.ModelChoice, string) (llm.Model, error), error) {
	asDemo := demo.New(&demo.Options{Next: "For real answers, an administrator can connect a model on the start page, or set models.default for loadout serve."})
	own, choice := llm.Model(asDemo), setup.ChooseModel(c, setup.ModelFlags{})
	if !choice.IsDemo() {
		var err error
		if own, err = a.NewModel(ctx, c, choice); err != nil {
			return nil, err
		}
	}
	public, local := vendors.PublicClient(private), vendors.PublicClient(vendors.WithLoopback(private))
	return func(m *agents.ModelChoice, key string) (llm.Model, error) {
		switch {
		case m == nil, m.BaseURL == "" && key == "" && m.Vendor+":"+m.Model.Model == own.Name():
			return own, nil
		case m.Vendor == vendors.Demo:
			return asDemo, nil
		}
		client := public
		if m.Local {
			client = local
		}
		made, err := a.newDefinedModel(c, m, key, client, private)
		if err != nil {
			return nil, fmt.Errorf("model %s: %w", m.Name, err)
		}
		return llm.Retry(made, nil), nil
	}, nil
}

// newDefinedModel creates a model defined by a hub user.
func (a *app) newDefinedModel(c *config.Config, m *agents.ModelChoice, key string, client *http.Client, private []netip.Prefix) (llm.Model, error) {
	if err := vendors.CheckKeyTransport(m.BaseURL, key, private); err != nil {
		return nil, err
	}
	v, ok := vendors.Lookup(m.Vendor)
	switch {
	case !ok:
		return nil, fmt.Errorf("unknown vendor %s: want anthropic, openai or demo", m.Vendor)
	case key == "" && m.BaseURL == "":
		return nil, errors.New("no API key: grant a secret to the model and set apiKey to its name")
	}
	return v.New(m.Model.Model, vendors.Options{Key: key, BaseURL: m.BaseURL, MaxTokens: c.Models.MaxTokens, HTTP: client})
}

// readsImages returns a function that reports whether the configured model reads
// images. It takes the name that the model reports.
func readsImages(c *config.Config) func(string) bool {
	own := setup.ChooseModel(c, setup.ModelFlags{}).ReportedName()
	return func(name string) bool {
		if name == own && (c.Models.Images == "always" || c.Models.Images == "never") {
			return c.Models.Images == "always"
		}
		return vendors.ReadsImages(name)
	}
}

// hubPrices returns two functions that take the name that a model reports. price
// returns the configured price of the model. window returns the configured context
// window for the configured model, which is 0 if none is set. For other models, it
// returns the window known for the name, or 0 if it is unknown.
func hubPrices(c *config.Config) (price func(string) (usage.Price, bool), window func(string) int) {
	own := setup.ChooseModel(c, setup.ModelFlags{}).ReportedName()
	return setup.Prices(c), func(name string) int {
		if name != "" && name == own {
			return c.Models.Window
		}
		return vendors.ContextWindow(name)
	}
}
