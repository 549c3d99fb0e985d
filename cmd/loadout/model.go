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

// vendorHosts are where they answer, where no other server is named.
var vendorHosts = map[string]string{"anthropic": "api.anthropic.com", "openai": "api.openai.com"}

// modelChoice is a language model that is meant, with its server and the key for that.
type modelChoice struct {
	asked  string // as it was named, "" where it was not
	name   string // as vendor:NAME, demo, or "" for none
	server string // "" is the vendor's own
	key    string // the secret or variable that has it, "" is the vendor's
}

// chosenModel is the model that is meant, with its server and the key for that: what is
// configured belongs together, and no key goes to a server that only a flag names.
func chosenModel(c *config.Config, o *chatFlags) modelChoice {
	name := cmp.Or(o.model, c.Models.Default)
	m, short := c.Models.Names[name]
	switch {
	case short:
	case name == c.Models.Default:
		m = config.Named{Model: name, BaseURL: c.Models.BaseURL, Key: c.Models.Key}
	default:
		m.Model = name
	}
	if o.baseURL != "" && o.baseURL != m.BaseURL {
		return modelChoice{o.model, m.Model, o.baseURL, o.key}
	}
	return modelChoice{o.model, m.Model, m.BaseURL, cmp.Or(o.key, m.Key)}
}

// isDemo says whether no language model is meant.
func (k modelChoice) isDemo() bool { return k.name == "" || k.name == "demo" }

// vendor is that of the model.
func (k modelChoice) vendor() string {
	vendor, _, _ := strings.Cut(k.name, ":")
	return vendor
}

// host is where the model answers, "" for the demonstration.
func (k modelChoice) host() string {
	if u, err := url.Parse(k.server); k.server != "" && err == nil {
		return u.Host
	}
	return vendorHosts[k.vendor()]
}

// keyHint is what to do where a server does not take the key.
func (k modelChoice) keyHint() string {
	if k.server != "" {
		return "name the secret or variable with the key for " + k.host() + " as --key NAME"
	}
	variable := cmp.Or(k.key, vendors[k.vendor()])
	return "check the key in " + variable + ", a variable, or a secret: loadout secret set " + variable
}

// serverHint is a text about a server that is not the vendor's own, else the other.
func (k modelChoice) serverHint(own string, vendors ...string) string {
	if k.server != "" {
		return own
	}
	return strings.Join(vendors, "")
}

// answering is the model of a conversation, which may change in its course.
type answering struct {
	began modelChoice
	now   modelChoice
	model llm.Model
}

// named is the model that a person names in a conversation. One of the vendor with
// which it began stays at the server with which it began: what was said there is not
// sent elsewhere unless a name of the configuration says so.
func (w *answering) named(c *config.Config, name string) modelChoice {
	next := chosenModel(c, &chatFlags{model: name})
	_, short := c.Models.Names[name]
	switch {
	case name == w.began.asked || name == w.began.name:
		return w.began
	case !short && next.server == "" && next.vendor() == w.began.vendor():
		next.server, next.key = w.began.server, w.began.key
	}
	return next
}

// model is the language model that is meant: of a vendor, or the demonstration.
func (a *app) model(ctx context.Context, c *config.Config, k modelChoice) (m llm.Model, err error) {
	if k.isDemo() {
		return demo.New(&demo.Options{Next: "For a real model: loadout chat --model anthropic:NAME or openai:NAME, with its key in ANTHROPIC_API_KEY or OPENAI_API_KEY."}), nil
	}
	vendor, model, _ := strings.Cut(k.name, ":")
	variable, known := vendors[vendor]
	if !known || model == "" {
		return nil, fail(exitUsage, "as anthropic:NAME, openai:NAME or demo", "%q names no model", k.name)
	}
	value, err := a.modelKey(ctx, variable, k.key, k.server)
	if err != nil {
		return nil, err
	}
	if vendor == "anthropic" {
		m, err = anthropic.New(model, &anthropic.Options{Key: value, BaseURL: k.server, MaxTokens: c.Models.MaxTokens, Logger: a.logger()})
	} else {
		m, err = openai.New(model, &openai.Options{Key: value, BaseURL: k.server, MaxTokens: c.Models.MaxTokens})
	}
	if err != nil {
		return nil, fail(exitUsage, "see: loadout chat --help", "model %s: %w", k.name, err)
	}
	return llm.Retry(m, nil), nil
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
		m, err := a.model(ctx, c, chosenModel(c, &chatFlags{model: name}))
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
