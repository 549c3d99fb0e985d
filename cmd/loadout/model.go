package main

import (
	"context"
	"net/url"
	"strings"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/demo"
	"github.com/loadout-dev/loadout/llm/openai"
	"github.com/loadout-dev/loadout/mcpserver"
)

// vendors are those whose models can be named, and the variable with their key.
var vendors = map[string]string{"anthropic": "ANTHROPIC_API_KEY", "openai": "OPENAI_API_KEY"}

// model is the language model that the flags or the configuration name: a vendor and
// the vendor's name for it, or the demonstration. Without any it is the
// demonstration, and given says so.
func (a *app) model(ctx context.Context, c *config.Config, name, baseURL string) (m llm.Model, given bool, err error) {
	if name == "" {
		name = c.Models.Default
	}
	if baseURL == "" {
		baseURL = c.Models.BaseURL
	}
	if name == "" || name == "demo" {
		return demo.New(&demo.Options{Next: "For a real model: loadout chat --model anthropic:NAME or openai:NAME, with its key in ANTHROPIC_API_KEY or OPENAI_API_KEY."}), name != "", nil
	}
	vendor, model, _ := strings.Cut(name, ":")
	variable, known := vendors[vendor]
	if !known || model == "" {
		return nil, false, fail(exitUsage, "as anthropic:NAME, openai:NAME or demo", "%q names no model", name)
	}
	key, err := a.modelKey(ctx, c, variable, baseURL)
	if err != nil {
		return nil, false, err
	}
	if vendor == "anthropic" {
		m, err = anthropic.New(model, &anthropic.Options{Key: key, BaseURL: baseURL, MaxTokens: c.Models.MaxTokens, Logger: a.logger()})
	} else {
		m, err = openai.New(model, &openai.Options{Key: key, BaseURL: baseURL, MaxTokens: c.Models.MaxTokens})
	}
	if err != nil {
		return nil, false, fail(exitUsage, "see: loadout chat --help", "model %s: %w", name, err)
	}
	return llm.Retry(m, nil), true, nil
}

// modelKey is the key for a server. That of a vendor goes to the vendor; another
// address gets the one that models.key names, and a server of this machine may do
// without.
func (a *app) modelKey(ctx context.Context, c *config.Config, variable, baseURL string) (string, error) {
	name := c.Models.Key
	if name == "" && baseURL == "" {
		name = variable
	}
	if name == "" {
		u, err := url.Parse(baseURL)
		if err == nil && mcpserver.IsLoopback(u.Hostname()) {
			return "", nil
		}
		return "", fail(exitUsage, "name the secret or variable that has its key: models: {key: NAME}; the key in "+variable+" is not sent to another server", "there is no key for %s", baseURL)
	}
	if key := a.getenv(name); key != "" {
		return key, nil
	}
	if key, err := a.secret(ctx, name); err == nil && key != "" {
		return key, nil
	}
	return "", fail(exitMissing, "set the variable, or keep it: loadout secret set "+name+"; or try without one: --model demo", "there is no key: %s is not set", name)
}
