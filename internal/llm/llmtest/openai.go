package llmtest

import (
	"encoding/json"
	"fmt"

	"github.com/loadout-dev/loadout/llm"
)

// OpenAI returns the vendor format of chat completions. The caller must set
// Open and NoThinking.
func OpenAI() *Vendor {
	return &Vendor{
		Answer: openaiAnswer,
		Refuse: func(turn *Turn) string {
			return toJSON(object{"error": object{"message": turn.Message, "type": "some_error", "code": nil}})
		},
		Prompt: openaiPrompt,
	}
}

var openaiReasons = map[llm.Stop]string{llm.StopEnd: "stop", llm.StopTools: "tool_calls", llm.StopLength: "length", llm.StopRefuse: "content_filter"}

func openaiAnswer(turn *Turn, stop llm.Stop) (body, end string) {
	delta := func(field string, value any) {
		body += SSE("", toJSON(object{"choices": []any{object{"delta": object{field: value}}}}))
	}
	if turn.Thinking != "" {
		delta("reasoning_content", turn.Thinking)
	}
	for _, piece := range turn.Text {
		delta("content", piece)
	}
	for i, c := range turn.Calls {
		half := len(c.Arguments) / 2
		delta("tool_calls", []any{object{"index": i, "id": c.ID, "type": "function", "function": object{"name": c.Name, "arguments": c.Arguments[:half]}}})
		delta("tool_calls", []any{object{"index": i, "function": object{"arguments": c.Arguments[half:]}}})
	}
	u := turn.Usage
	usage := object{"prompt_tokens": u.Prompt(), "completion_tokens": u.Output,
		"prompt_tokens_details": object{"cached_tokens": u.CacheRead, "cache_write_tokens": u.CacheWrite}}
	return body, SSE("", toJSON(object{"choices": []any{object{"delta": object{}, "finish_reason": openaiReasons[stop]}}})) +
		SSE("", toJSON(object{"choices": []any{}, "usage": usage})) + SSE("", "[DONE]")
}

// openaiPrompt returns the tools and then the messages of a request, in the
// order in which the vendor caches them.
func openaiPrompt(body []byte) ([]any, error) {
	var r struct{ Tools, Messages []any }
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("parse chat completions request: %w", err)
	}
	return append(r.Tools, r.Messages...), nil
}
