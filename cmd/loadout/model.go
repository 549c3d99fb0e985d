package main

import (
	"cmp"
	"context"
	"errors"
	"net/url"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/llm"
)

// modelChoice is a language model with its server and key.
type modelChoice struct {
	asked  string // the name given by the user, or ""
	name   string // vendor:NAME, demo, or "" for none
	server string // base URL, or "" for the vendor's own
	key    string // secret or variable with the key, or "" for the vendor's
}

// chooseModel returns the model of the flags or the configuration, with its
// server and key. A configured key is never used for a server that only a flag
// names.
func chooseModel(c *config.Config, o *chatFlags) modelChoice {
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

// isDemo reports whether the built-in demo is chosen.
func (k modelChoice) isDemo() bool { return k.name == "" || k.name == vendors.Demo }

// vendor returns the vendor of the model.
func (k modelChoice) vendor() vendors.Vendor {
	v, _, _ := vendors.Parse(k.name)
	return v
}

// host returns the host of the model's server, or "" for the demo.
func (k modelChoice) host() string {
	if u, err := url.Parse(k.server); k.server != "" && err == nil {
		return u.Host
	}
	return k.vendor().Host
}

// keyHint returns the next step if a server rejects the key.
func (k modelChoice) keyHint() string {
	if k.server != "" {
		return "name the secret or variable with the key for " + k.host() + " with --key NAME"
	}
	variable := cmp.Or(k.key, k.vendor().KeyVariable)
	return "check the key in " + variable + "; it is read from a variable, or from a secret: loadout secret set " + variable
}

// serverHint returns own for a server that is not the vendor's, else the joined
// vendors.
func (k modelChoice) serverHint(own string, vendor ...string) string {
	if k.server != "" {
		return own
	}
	return strings.Join(vendor, "")
}

// activeModel is the model of a conversation. It can change during the
// conversation.
type activeModel struct {
	began modelChoice
	now   modelChoice
	model llm.Model
}

// resolveName returns the model for a name given in a conversation. A model of
// the same vendor keeps the server of the start: the conversation is not sent
// to another server unless the configuration names it.
func (w *activeModel) resolveName(c *config.Config, name string) modelChoice {
	next := chooseModel(c, &chatFlags{model: name})
	_, short := c.Models.Names[name]
	switch {
	case name == w.began.asked || name == w.began.name:
		return w.began
	case !short && next.server == "" && next.vendor().Name == w.began.vendor().Name:
		next.server, next.key = w.began.server, w.began.key
	}
	return next
}

// newModel returns the chosen language model, or the demo.
func (a *app) newModel(ctx context.Context, c *config.Config, k modelChoice) (m llm.Model, err error) {
	if k.isDemo() {
		return demo.New(&demo.Options{Next: "For a real model: loadout chat --model anthropic:NAME or openai:NAME, with its key in ANTHROPIC_API_KEY or OPENAI_API_KEY."}), nil
	}
	vendor, model, known := vendors.Parse(k.name)
	if !known || vendor.Name == vendors.Demo {
		return nil, exit.Errorf(exit.Usage, "use anthropic:NAME, openai:NAME or demo", "unknown model %q", k.name)
	}
	value, err := a.findModelKey(ctx, vendor.KeyVariable, k.key, k.server)
	if err != nil {
		return nil, err
	}
	m, err = vendor.New(model, vendors.Options{Key: value, BaseURL: k.server, MaxTokens: c.Models.MaxTokens, Logger: a.logger()})
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "see: loadout chat --help", "model %s: %w", k.name, err)
	}
	return llm.Retry(m, nil), nil
}

// modelResolver returns a function that creates the models skills name in
// models.names. It caches them.
func (a *app) modelResolver(ctx context.Context, c *config.Config) func(string) (llm.Model, error) {
	made := map[string]llm.Model{}
	var mu sync.Mutex
	return func(name string) (llm.Model, error) {
		mu.Lock()
		defer mu.Unlock()
		if m := made[name]; m != nil {
			return m, nil
		}
		if _, ok := c.Models.Names[name]; !ok {
			return nil, errors.New("not found in models.names")
		}
		m, err := a.newModel(ctx, c, chooseModel(c, &chatFlags{model: name}))
		if err == nil {
			made[name] = m
		}
		return m, err
	}
}

// findModelKey returns the key for a server, or "" for none. A vendor's key is
// sent to the vendor only. Another server gets the key named for it, encrypted
// unless it is on this machine. A server on this machine needs no key.
func (a *app) findModelKey(ctx context.Context, variable, name, server string) (string, error) {
	if server != "" {
		u, err := url.Parse(server)
		if err != nil || u.Host == "" {
			return "", exit.Errorf(exit.Usage, "use an address such as https://models.example.com/v1", "--base-url is not a valid address")
		}
		here := address.IsLoopback(u.Hostname())
		switch {
		case name == "" && here:
			return "", nil
		case name == "":
			return "", exit.Errorf(exit.Usage, "name the secret or variable with its key with --key NAME or models.key; the key in "+variable+" is not sent to another server", "no key for %s", u.Host)
		case u.Scheme != "https" && !here:
			return "", exit.Errorf(exit.Usage, "give an address with https", "refusing to send a key to %s unencrypted", u.Host)
		}
	}
	name = cmp.Or(name, variable)
	if key := a.Getenv(name); key != "" {
		return key, nil
	}
	if key, err := a.secretValue(ctx, name); err == nil && key != "" {
		return key, nil
	}
	return "", exit.Errorf(exit.Missing, "set the variable, or store a secret: loadout secret set "+name+"; to try without a key: --model demo", "no key: %s is not set", name)
}
