package main

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/setup"
)

// The configured window belongs to the configured model, also at another server.
// For other models, the window known for the name counts.
func TestHubPricesWindow(t *testing.T) {
	for _, tt := range []struct {
		base, name string
		window     int
		want       int
	}{
		{"", "openai:gpt-4o", 50_000, 50_000},
		{"", "openai:gpt-4o", 0, 0},
		{"", "openai:gpt-4.1", 0, 1_047_576},
		{"", "anthropic:claude-sonnet-4-5", 50_000, 200_000},
		{"", "other:gpt-4o", 50_000, 0},
		{"", "", 50_000, 0},
		{"http://127.0.0.1:8000/v1", "own", 50_000, 50_000},
		{"http://127.0.0.1:8000/v1", "own", 0, 0},
	} {
		c := &config.Config{}
		c.Models.Default, c.Models.BaseURL, c.Models.Window = "openai:gpt-4o", tt.base, tt.window
		name := tt.name
		if name == "own" {
			name = setup.ChooseModel(c, setup.ModelFlags{}).ReportedName()
		}
		if _, window := hubPrices(c); window(name) != tt.want {
			t.Errorf("base %q, window %d: window(%q) = %d, want %d", tt.base, tt.window, name, window(name), tt.want)
		}
	}
}
