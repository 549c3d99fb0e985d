package vendors_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/llm/vendors"
)

// The context windows of the vendors' models are known by name, but only at the
// vendors' own servers.
func TestContextWindow(t *testing.T) {
	for name, want := range map[string]int{
		"anthropic:claude-sonnet-4-5": 200_000, "anthropic:claude-2.0": 100_000, "anthropic:other": 0,
		"openai:gpt-4o-mini": 128_000, "openai:gpt-4.1-nano": 1_047_576, "openai:gpt-4": 8_192, "openai:gpt-4-0613": 8_192,
		"openai:gpt-4-turbo-preview": 128_000, "openai:gpt-5": 272_000, "openai:gpt-5.1": 272_000, "openai:o3-mini": 200_000, "openai:o1-mini": 128_000,
		"openai:gpt-40": 0, "openai:o3x": 0, "openai:fake": 0,
		"127.0.0.1:8000:gpt-4o": 0, "ollama:gpt-4o": 0, "gpt-4o": 0, "demo:rules": 0, "": 0,
	} {
		if got := vendors.ContextWindow(name); got != want {
			t.Errorf("ContextWindow(%q) = %d, want %d", name, got, want)
		}
	}
}
