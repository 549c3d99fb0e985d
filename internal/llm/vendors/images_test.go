package vendors_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/llm/vendors"
)

// Models that read images are known by their names, at any server.
func TestReadsImages(t *testing.T) {
	for name, want := range map[string]bool{
		"anthropic:claude-sonnet-4-5": true, "anthropic:claude-3-5-haiku-20241022": true, "anthropic:claude-2.1": false,
		"openai:gpt-4o-mini": true, "openai:gpt-5": true, "openai:gpt-5.1": true, "openai:o3": true, "openai:o3-mini": false, "openai:gpt-3.5-turbo": false,
		"openrouter:anthropic/claude-sonnet-5": true, "vllm:Qwen/Qwen2.5-VL-7B-Instruct": true, "vllm:Qwen/Qwen3-8B": false,
		"ollama:llava:13b": true, "ollama:llama3.2-vision": true, "ollama:llama3.2": false, "ollama:gemma3:27b": true, "ollama:gemma3:1b": false, "ollama:qwen2.5vl:7b": true,
		"deepseek:deepseek-chat": false, "x:provision": false, "x:llama-40": true, "ollama:marco-o1": false, "ollama:skywork-o1-open-llama-3.1-8b": false, "openrouter:openai/o3": true, "openai:o1-2024-12-17": true, "openai:o3x": false,
		"ollama:gemma3:270m": false, "vllm:google/gemma-3-270m-it": false, "openai:gpt-4-turbo-preview": false, "openai:gpt-4-turbo": true, "demo:rules": false, "": false,
	} {
		if got := vendors.ReadsImages(name); got != want {
			t.Errorf("ReadsImages(%q) = %v, want %v", name, got, want)
		}
	}
}
