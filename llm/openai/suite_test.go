package openai_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"testing"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/llmtest"
	"github.com/loadout-dev/loadout/llm/openai"
)

func TestModel(t *testing.T) {
	for name, q := range map[string]*openai.Quirks{"plain": quirks("v", nil), "replaying": quirks("v", func(q *quirk) { q.Replay = true })} {
		t.Run(name, func(t *testing.T) {
			llmtest.Run(t, &llmtest.Vendor{
				Open: func(url string, client *http.Client) (llm.Model, error) {
					return openai.New("some-model", &openai.Options{Key: llmtest.Key, BaseURL: url + "/v1", HTTP: client, Quirks: q})
				},
				Answer: written, Refuse: refusal, Prompt: prompt, NoThinking: !q.Replay,
			})
		})
	}
}

var reasons = map[llm.Stop]string{llm.StopEnd: "stop", llm.StopTools: "tool_calls", llm.StopLength: "length", llm.StopRefuse: "content_filter"}

// written is a turn as chat completions stream it.
func written(turn *llmtest.Turn, stop llm.Stop) (body, end string) {
	delta := func(field string, value any) {
		b, err := json.Marshal(map[string]any{"choices": []any{map[string]any{"delta": map[string]any{field: value}}}})
		if err != nil {
			panic(err) // it is data
		}
		body += llmtest.SSE("", string(b))
	}
	if turn.Thinking != "" {
		delta("reasoning_content", turn.Thinking)
	}
	for _, piece := range turn.Text {
		delta("content", piece)
	}
	for i, c := range turn.Calls {
		half := len(c.Arguments) / 2
		delta("tool_calls", []any{map[string]any{"index": i, "id": c.ID, "type": "function", "function": map[string]any{"name": c.Name, "arguments": c.Arguments[:half]}}})
		delta("tool_calls", []any{map[string]any{"index": i, "function": map[string]any{"arguments": c.Arguments[half:]}}})
	}
	u := turn.Usage
	return body, llmtest.SSE("", fmt.Sprintf(`{"choices":[{"delta":{},"finish_reason":%q}]}`, reasons[stop])) +
		llmtest.SSE("", fmt.Sprintf(`{"choices":[],"usage":{"prompt_tokens":%d,"completion_tokens":%d,"prompt_tokens_details":{"cached_tokens":%d,"cache_write_tokens":%d}}}`, u.Prompt(), u.Output, u.CacheRead, u.CacheWrite)) +
		llmtest.SSE("", "[DONE]")
}

func refusal(turn *llmtest.Turn) string {
	b, err := json.Marshal(map[string]any{"error": map[string]any{"message": turn.Message, "type": "some_error", "code": nil}})
	if err != nil {
		panic(err) // it is data
	}
	return string(b)
}

// prompt is the tools, then the messages.
func prompt(body []byte) ([]any, error) {
	var r struct{ Tools, Messages []any }
	err := json.Unmarshal(body, &r)
	return append(r.Tools, r.Messages...), err
}
