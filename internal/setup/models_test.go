package setup

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/console"
)

// A key goes to the server that it is for, and not in clear.
func TestKeysGoToPromptOrEditor(t *testing.T) {
	for _, tt := range []struct {
		name   string
		models config.Models
		flags  ModelFlags
		want   string // part of the error, "" for none
	}{
		{"a vendor", config.Models{}, ModelFlags{Model: "anthropic:x"}, ""},
		{"another server without a key of its own", config.Models{}, ModelFlags{Model: "openai:x", BaseURL: "https://models.example.com/v1"}, "no key for models.example.com"},
		{"the configured server", config.Models{Default: "openai:x", BaseURL: "https://models.example.com/v1", Key: "OWN"}, ModelFlags{}, ""},
		{"another model of the configured key", config.Models{Default: "anthropic:x", Key: "OWN"}, ModelFlags{Model: "openai:y", BaseURL: "https://models.example.com/v1"}, "no key for"},
		{"another server than the configured", config.Models{Default: "openai:x", BaseURL: "https://a.example.com/v1", Key: "OWN"}, ModelFlags{BaseURL: "https://b.example.com/v1"}, "no key for b.example.com"},
		{"a key that is named", config.Models{}, ModelFlags{Model: "openai:x", BaseURL: "https://models.example.com/v1", Key: "OWN"}, ""},
		{"unencrypted", config.Models{}, ModelFlags{Model: "openai:x", BaseURL: "http://models.example.com/v1", Key: "OWN"}, "unencrypted"},
		{"this machine", config.Models{}, ModelFlags{Model: "openai:x", BaseURL: "http://127.0.0.1:1/v1"}, ""},
		{"no address", config.Models{}, ModelFlags{Model: "openai:x", BaseURL: "models"}, "is not a valid address"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			env := map[string]string{"ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "b", "OWN": "c", "HOME": t.TempDir()}
			a := &Setup{Console: console.Console{Getenv: func(k string) string { return env[k] }}}
			c := &config.Config{Models: tt.models}
			_, err := a.NewModel(t.Context(), c, ChooseModel(c, tt.flags))
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("%v, want %q", err, tt.want)
			}
		})
	}
}

// A price under the configured name counts, though a model with a base URL reports
// its server instead of the vendor.
func TestPricesOfModelsWithBaseURL(t *testing.T) {
	c := &config.Config{Models: config.Models{Default: "openai:qwen", BaseURL: "http://127.0.0.1:11434/v1",
		Names:  map[string]config.NamedModel{"gateway": {Model: "openai:big", BaseURL: "https://models.example.com/v1"}},
		Prices: map[string]config.Price{"openai:qwen": {Input: 1, Output: 2}, "openai:b*": {Input: 3, Output: 4}, "models.example.com:other": {Input: 5, Output: 6}}}}
	price := Prices(c)
	for name, want := range map[string]float64{"ollama:qwen": 1, "openai:qwen": 1, "models.example.com:big": 3, "models.example.com:other": 5, "ollama:big": 0, "demo:rules": 0} {
		if p, known := price(name); p.Input != want || known != (want != 0) {
			t.Errorf("%s: %v, %t; want %v", name, p, known, want)
		}
	}
	if got := ChooseModel(c, ModelFlags{}).ReportedName(); got != "ollama:qwen" {
		t.Errorf("the configured model reports %s", got)
	}
}
