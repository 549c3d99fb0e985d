// Package vendors lists the supported model vendors. A new vendor is a row in
// the table. The package does not look up keys or choose models; callers pass
// both.
package vendors

import (
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/llm/demo"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/openai"
)

// Demo is the vendor name of the built-in demo, which needs no server and no
// key.
const Demo = "demo"

// Vendor describes a company or program that serves models.
type Vendor struct {
	Name        string
	Aliases     []string // other accepted names
	KeyVariable string   // environment variable that holds the key; "" if no key is needed
	Host        string   // host of the vendor's own server; "" if there is none
	new         func(model string, o Options) (llm.Model, error)
	list        listRequest // nil if the vendor has no list of models
}

// Options configures the connection to a model.
type Options struct {
	Key       string
	BaseURL   string // "" for the vendor's own server
	MaxTokens int
	HTTP      *http.Client // nil means the default client
	Logger    *slog.Logger
}

var table = []Vendor{
	{Name: "anthropic", Aliases: []string{"claude"}, KeyVariable: "ANTHROPIC_API_KEY", Host: "api.anthropic.com", list: anthropicList,
		new: func(model string, o Options) (llm.Model, error) {
			return anthropic.New(model, &anthropic.Options{Key: o.Key, BaseURL: o.BaseURL, MaxTokens: o.MaxTokens, HTTP: o.HTTP, Logger: o.Logger})
		}},
	{Name: "openai", KeyVariable: "OPENAI_API_KEY", Host: "api.openai.com", list: openaiList,
		new: func(model string, o Options) (llm.Model, error) {
			return openai.New(model, &openai.Options{Key: o.Key, BaseURL: o.BaseURL, MaxTokens: o.MaxTokens, HTTP: o.HTTP})
		}},
	{Name: Demo, new: func(string, Options) (llm.Model, error) { return demo.New(nil), nil }},
}

// Lookup returns the vendor with the given name or alias, ignoring case.
func Lookup(name string) (Vendor, bool) {
	name = strings.ToLower(name)
	i := slices.IndexFunc(table, func(v Vendor) bool { return v.Name == name || slices.Contains(v.Aliases, name) })
	if i < 0 {
		return Vendor{}, false
	}
	return table[i], true
}

// Parse splits a full model name, vendor:NAME. It returns false if the vendor
// is unknown or the name is missing.
func Parse(name string) (v Vendor, model string, ok bool) {
	vendor, model, _ := strings.Cut(name, ":")
	v, ok = Lookup(vendor)
	return v, model, ok && v.Name == vendor && (model != "" || v.Name == Demo)
}

// ReportedName returns the name that a model of the vendor reports, as in
// [llm.Model]. With the base URL of another server, its first part is that server's
// name, such as ollama, instead of the vendor's.
func (v Vendor) ReportedName(model, base string) string {
	m, err := v.New(model, Options{BaseURL: base, Key: "none"})
	if err != nil {
		return v.Name + ":" + model
	}
	return m.Name()
}

// IsDemo reports whether a model name that a model reported is the demo's.
func IsDemo(name string) bool {
	vendor, _, _ := strings.Cut(name, ":")
	return vendor == Demo
}

// New returns a model of the vendor. It makes no connection until the model is
// used.
func (v Vendor) New(model string, o Options) (llm.Model, error) {
	if v.new == nil {
		return nil, fmt.Errorf("unknown vendor %q", v.Name)
	}
	return v.new(model, o)
}
