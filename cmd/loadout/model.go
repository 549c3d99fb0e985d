package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"

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
func (a *app) model(ctx context.Context, c *config.Config, o *chatFlags) (m llm.Model, given bool, err error) {
	name, server, key := chosenModel(c, o)
	if name == "" || name == "demo" {
		return demo.New(&demo.Options{Next: "For a real model: loadout chat --model anthropic:NAME or openai:NAME, with its key in ANTHROPIC_API_KEY or OPENAI_API_KEY."}), name != "", nil
	}
	vendor, model, _ := strings.Cut(name, ":")
	variable, known := vendors[vendor]
	if !known || model == "" {
		return nil, false, fail(exitUsage, "as anthropic:NAME, openai:NAME or demo", "%q names no model", name)
	}
	value, err := a.modelKey(ctx, variable, key, server)
	if err != nil {
		return nil, false, err
	}
	if vendor == "anthropic" {
		m, err = anthropic.New(model, &anthropic.Options{Key: value, BaseURL: server, MaxTokens: c.Models.MaxTokens, Logger: a.logger()})
	} else {
		m, err = openai.New(model, &openai.Options{Key: value, BaseURL: server, MaxTokens: c.Models.MaxTokens})
	}
	if err != nil {
		return nil, false, fail(exitUsage, "see: loadout chat --help", "model %s: %w", name, err)
	}
	return llm.Retry(m, nil), true, nil
}

// chosenModel is the model that is meant, with its server and the key for that: what is
// configured belongs together, and no key goes to a server that only a flag names.
func chosenModel(c *config.Config, o *chatFlags) (name, server, key string) {
	name = cmp.Or(o.model, c.Models.Default)
	m, short := c.Models.Names[name]
	switch {
	case short:
	case name == c.Models.Default:
		m = config.Named{Model: name, BaseURL: c.Models.BaseURL, Key: c.Models.Key}
	default:
		m.Model = name
	}
	if o.baseURL != "" && o.baseURL != m.BaseURL {
		return m.Model, o.baseURL, o.key
	}
	return m.Model, m.BaseURL, cmp.Or(o.key, m.Key)
}

// namedModel returns the model that a skill names: one of the configuration's names.
func (a *app) namedModel(ctx context.Context, c *config.Config) func(string) (llm.Model, error) {
	made := map[string]llm.Model{}
	var mu sync.Mutex
	return func(name string) (llm.Model, error) {
		mu.Lock()
		defer mu.Unlock()
		if m := made[name]; m != nil {
			return m, nil
		}
		if _, ok := c.Models.Names[name]; !ok {
			return nil, errors.New("models.names has no such name")
		}
		m, _, err := a.model(ctx, c, &chatFlags{model: name})
		if err == nil {
			made[name] = m
		}
		return m, err
	}
}

// modelKey is the key for a server, "" for none. That of a vendor goes to the vendor;
// another server gets the one that is named for it, and not in clear over a network.
// A server of this machine may do without.
func (a *app) modelKey(ctx context.Context, variable, name, server string) (string, error) {
	if server != "" {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" {
			return "", fail(exitUsage, "as https://models.example.com/v1", "--base-url is no address")
		}
		here := mcpserver.IsLoopback(u.Hostname())
		switch {
		case name == "" && here:
			return "", nil
		case name == "":
			return "", fail(exitUsage, "name the secret or variable that has its key, with --key NAME or as models.key; the one in "+variable+" is not sent to another server", "there is no key for %s", u.Host)
		case u.Scheme != "https" && !here:
			return "", fail(exitUsage, "give an address with https", "a key is not sent to %s in clear", u.Host)
		}
	}
	name = cmp.Or(name, variable)
	if key := a.getenv(name); key != "" {
		return key, nil
	}
	if key, err := a.secret(ctx, name); err == nil && key != "" {
		return key, nil
	}
	return "", fail(exitMissing, "set the variable, or keep it: loadout secret set "+name+"; or try without one: --model demo", "there is no key: %s is not set", name)
}
