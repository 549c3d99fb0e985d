package setup

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/internal/address"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/exit"
	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/internal/llm/vendors"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/llm"
)

// ModelChoice selects a language model, its server and its key.
type ModelChoice struct {
	Requested string // the name given by the user, or ""
	Name      string // vendor:NAME, "demo", or "" if none is chosen
	Server    string // base URL, or "" for the vendor's own
	Key       string // secret or variable with the key, or "" for the vendor's
}

// ModelFlags holds the flags that select a model.
type ModelFlags struct{ Model, BaseURL, Key string }

// ChooseModel returns the model selected by the flags or the configuration,
// with its Server and Key. A configured key is never used for a server that
// only a flag names.
func ChooseModel(c *config.Config, o ModelFlags) ModelChoice {
	name := cmp.Or(o.Model, c.Models.Default)
	m, short := c.Models.Names[name]
	switch {
	case short:
	case name == c.Models.Default:
		m = config.NamedModel{Model: name, BaseURL: c.Models.BaseURL, Key: c.Models.Key}
	default:
		m.Model = name
	}
	if o.BaseURL != "" && o.BaseURL != m.BaseURL {
		return ModelChoice{o.Model, m.Model, o.BaseURL, o.Key}
	}
	return ModelChoice{o.Model, m.Model, m.BaseURL, cmp.Or(o.Key, m.Key)}
}

// NewModel creates the chosen language model or the demo.
func (s *Setup) NewModel(ctx context.Context, c *config.Config, k ModelChoice) (m llm.Model, err error) {
	if k.IsDemo() {
		return demo.New(&demo.Options{Next: "For a real model: loadout chat --model anthropic:NAME or openai:NAME, with its key in ANTHROPIC_API_KEY or OPENAI_API_KEY."}), nil
	}
	vendor, model, known := vendors.Parse(k.Name)
	if !known || vendor.Name == vendors.Demo {
		return nil, exit.Errorf(exit.Usage, "use anthropic:NAME, openai:NAME or demo", "unknown model %q", k.Name)
	}
	value, err := s.findModelKey(ctx, vendor.KeyVariable, k.Key, k.Server)
	if err != nil {
		return nil, err
	}
	m, err = vendor.New(model, vendors.Options{Key: value, BaseURL: k.Server, MaxTokens: c.Models.MaxTokens, Logger: s.Logger()})
	if err != nil {
		return nil, exit.Errorf(exit.Usage, "see: loadout chat --help", "model %s: %w", k.Name, err)
	}
	return llm.Retry(m, nil), nil
}

// ListModels returns the names of the models that the server selected by k
// offers, in the form vendor:NAME. The names are untrusted. If the server needs
// a key and none is configured, ListModels returns an error without sending a
// request.
func (s *Setup) ListModels(ctx context.Context, k ModelChoice) ([]string, error) {
	vendor := k.vendor()
	key, err := s.findModelKey(ctx, vendor.KeyVariable, k.Key, k.Server)
	if err != nil {
		return nil, err
	}
	names, err := vendor.Models(ctx, vendors.Options{Key: key, BaseURL: k.Server})
	for i := range names {
		names[i] = vendor.Name + ":" + names[i]
	}
	return names, err
}

// ReportedName returns the name that the model reports; see [llm.Model]. It is the
// configured name unless the model's server has its own name.
func (k ModelChoice) ReportedName() string {
	vendor, model, known := vendors.Parse(k.Name)
	if !known || k.Server == "" {
		return k.Name
	}
	return vendor.ReportedName(model, k.Server)
}

// Prices returns a function that returns the price of a model in models.prices by
// the name that the model reports. If the configuration gives the model a base URL,
// the name in the configuration counts too.
func Prices(c *config.Config) func(name string) (usage.Price, bool) {
	configured := map[string]string{} // by reported name
	for _, name := range append(slices.Sorted(maps.Keys(c.Models.Names)), c.Models.Default) {
		k := ChooseModel(c, ModelFlags{Model: name})
		configured[k.ReportedName()] = k.Name
	}
	return func(name string) (usage.Price, bool) {
		p, known := c.Models.Price(name)
		if as := configured[name]; !known && as != "" {
			p, known = c.Models.Price(as)
		}
		return usage.Price(p), known
	}
}

// ModelResolver returns a function that creates the model for a short name from
// models.names, which skills can use. The function caches the models.
func (s *Setup) ModelResolver(ctx context.Context, c *config.Config) func(string) (llm.Model, error) {
	made := map[string]llm.Model{}
	var mu sync.Mutex
	return func(name string) (llm.Model, error) {
		mu.Lock()
		defer mu.Unlock()
		if m := made[name]; m != nil {
			return m, nil
		}
		if _, ok := c.Models.Names[name]; !ok {
			return nil, errors.New("name not found in models.names")
		}
		m, err := s.NewModel(ctx, c, ChooseModel(c, ModelFlags{Model: name}))
		if err == nil {
			made[name] = m
		}
		return m, err
	}
}

// findModelKey returns the API key for a server, or "" if it needs none. A
// vendor's key is sent only to that vendor. Another server gets the key
// configured for it, over an encrypted connection unless it is on this machine.
// A server on this machine needs no key.
func (s *Setup) findModelKey(ctx context.Context, variable, name, server string) (string, error) {
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
	if key := s.Getenv(name); key != "" {
		return key, nil
	}
	if key, err := s.SecretValue(ctx, name); err == nil && key != "" {
		return key, nil
	}
	return "", exit.Errorf(exit.Missing, "set the variable, or store a secret: loadout secret set "+name+"; to try without a key: --model demo", "no key: %s is not set", name)
}

// IsDemo reports whether the choice is the built-in demo, the default.
func (k ModelChoice) IsDemo() bool { return k.Name == "" || k.Name == vendors.Demo }

func (k ModelChoice) vendor() vendors.Vendor {
	v, _, _ := vendors.Parse(k.Name)
	return v
}

// Host returns the host of the model's server, or "" for the demo.
func (k ModelChoice) Host() string {
	if u, err := url.Parse(k.Server); k.Server != "" && err == nil {
		return u.Host
	}
	return k.vendor().Host
}

// KeyHint returns the hint for an error about a rejected key.
func (k ModelChoice) KeyHint() string {
	if k.Server != "" {
		return "name the secret or variable with the key for " + k.Host() + " with --key NAME"
	}
	variable := cmp.Or(k.Key, k.vendor().KeyVariable)
	return "check the key in " + variable + "; it is read from a variable, or from a secret: loadout secret set " + variable
}

// ServerHint returns hint if the configuration or a flag names the model's
// server. Otherwise it returns the vendor's hint, the concatenation of vendor.
func (k ModelChoice) ServerHint(hint string, vendor ...string) string {
	if k.Server != "" {
		return hint
	}
	return strings.Join(vendor, "")
}

// ActiveModel holds the model of a conversation, which the user can change.
type ActiveModel struct {
	Began ModelChoice
	Now   ModelChoice
	Model llm.Model
}

// Listable returns the model choices whose servers can list their models: the
// current choice and the conversation's initial choice, without duplicates and
// without the demo. The user can select a model of these servers as
// vendor:NAME.
func (w *ActiveModel) Listable(c *config.Config) []ModelChoice {
	var out []ModelChoice
	for _, k := range []ModelChoice{w.Now, w.Began} {
		if vendor := k.vendor(); !k.IsDemo() && vendor.Name != "" {
			listed := w.ResolveName(c, vendor.Name+":*")
			if !slices.Contains(out, listed) {
				out = append(out, listed)
			}
		}
	}
	return out
}

// ResolveName returns the model for a name given in a conversation. A model of
// the initial model's vendor uses the initial server, because the conversation
// must not be sent to another server unless the configuration names it.
func (w *ActiveModel) ResolveName(c *config.Config, name string) ModelChoice {
	next := ChooseModel(c, ModelFlags{Model: name})
	_, short := c.Models.Names[name]
	switch {
	case name == w.Began.Requested || name == w.Began.Name:
		return w.Began
	case !short && next.Server == "" && next.vendor().Name == w.Began.vendor().Name:
		next.Server, next.Key = w.Began.Server, w.Began.Key
	}
	return next
}
