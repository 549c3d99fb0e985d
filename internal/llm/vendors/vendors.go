// Package vendors lists the vendors whose models the program supports. A new
// vendor is one row of the table. The package finds no keys and chooses no
// model; callers pass both.
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

// Demo is the name of the built-in demo, which needs no server and no key.
const Demo = "demo"

// Vendor is a company or program that serves models.
type Vendor struct {
	Name        string
	Aliases     []string // other names in documents
	KeyVariable string   // environment variable with the key; "" for none
	Host        string   // of its own server; "" for none
	new         func(model string, o Options) (llm.Model, error)
}

// Options configure a model.
type Options struct {
	Key       string
	BaseURL   string // "" for the vendor's own server
	MaxTokens int
	HTTP      *http.Client // nil for the default
	Logger    *slog.Logger
}

var table = []Vendor{
	{Name: "anthropic", Aliases: []string{"claude"}, KeyVariable: "ANTHROPIC_API_KEY", Host: "api.anthropic.com",
		new: func(model string, o Options) (llm.Model, error) {
			return anthropic.New(model, &anthropic.Options{Key: o.Key, BaseURL: o.BaseURL, MaxTokens: o.MaxTokens, HTTP: o.HTTP, Logger: o.Logger})
		}},
	{Name: "openai", KeyVariable: "OPENAI_API_KEY", Host: "api.openai.com",
		new: func(model string, o Options) (llm.Model, error) {
			return openai.New(model, &openai.Options{Key: o.Key, BaseURL: o.BaseURL, MaxTokens: o.MaxTokens, HTTP: o.HTTP})
		}},
	{Name: Demo, new: func(string, Options) (llm.Model, error) { return demo.New(nil), nil }},
}

// Lookup returns the vendor with a name or alias, in any case.
func Lookup(name string) (Vendor, bool) {
	name = strings.ToLower(name)
	i := slices.IndexFunc(table, func(v Vendor) bool { return v.Name == name || slices.Contains(v.Aliases, name) })
	if i < 0 {
		return Vendor{}, false
	}
	return table[i], true
}

// Parse splits vendor:NAME. It returns false for an unknown vendor or a missing
// name.
func Parse(name string) (v Vendor, model string, ok bool) {
	vendor, model, _ := strings.Cut(name, ":")
	v, ok = Lookup(vendor)
	return v, model, ok && v.Name == vendor && (model != "" || v.Name == Demo)
}

// New returns a model of the vendor.
func (v Vendor) New(model string, o Options) (llm.Model, error) {
	if v.new == nil {
		return nil, fmt.Errorf("unknown vendor %q", v.Name)
	}
	return v.new(model, o)
}
