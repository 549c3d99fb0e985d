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
