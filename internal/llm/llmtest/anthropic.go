package llmtest

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// Anthropic returns the vendor format of the Messages API. The caller must set
// Open.
func Anthropic() *Vendor {
	return &Vendor{
		Answer: anthropicAnswer,
		Refuse: func(turn *Turn) string {
			return toJSON(object{"type": "error", "error": object{"type": "some_error", "message": turn.Message}})
		},
		Prompt: anthropicPrompt,
	}
}

// object is a JSON object in a request or response.
type object = map[string]any

func toJSON(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // the values of tests always encode
	}
	return string(b)
}

var anthropicReasons = map[llm.Stop]string{
	llm.StopEnd: "end_turn", llm.StopTools: "tool_use", llm.StopLength: "max_tokens", llm.StopRefuse: "refusal", llm.StopPause: "pause_turn",
}

func anthropicAnswer(turn *Turn, stop llm.Stop) (body, end string) {
	var out strings.Builder
	say := func(kind string, members object) {
		members["type"] = kind
		out.WriteString(SSE(kind, toJSON(members)))
	}
	u := turn.Usage
	say("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-5-x", "content": []any{},
		"usage": object{"input_tokens": u.Input, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite, "output_tokens": 1}}})
	say("ping", object{})
	index := 0
	block := func(begin object, deltas ...object) {
		say("content_block_start", object{"index": index, "content_block": begin})
		for _, d := range deltas {
			say("content_block_delta", object{"index": index, "delta": d})
		}
		say("content_block_stop", object{"index": index})
		index++
	}
	if turn.Thinking != "" {
		half := len(turn.Thinking) / 2
		block(object{"type": "thinking", "thinking": "", "signature": ""},
			object{"type": "thinking_delta", "thinking": turn.Thinking[:half]}, object{"type": "thinking_delta", "thinking": turn.Thinking[half:]},
			object{"type": "signature_delta", "signature": turn.Signature})
	}
	if len(turn.Text) > 0 {
		var deltas []object
		for _, piece := range turn.Text {
			deltas = append(deltas, object{"type": "text_delta", "text": piece})
		}
		block(object{"type": "text", "text": ""}, deltas...)
	}
	for _, c := range turn.Calls {
		half := len(c.Arguments) / 2
		var deltas []object
		for _, piece := range []string{"", c.Arguments[:half], c.Arguments[half:]} {
			deltas = append(deltas, object{"type": "input_json_delta", "partial_json": piece})
		}
		block(object{"type": "tool_use", "id": c.ID, "name": c.Name, "input": object{}}, deltas...)
	}
	body = out.String()
	out.Reset()
	say("message_delta", object{"delta": object{"stop_reason": anthropicReasons[stop], "stop_sequence": nil}, "usage": object{"output_tokens": u.Output}})
	say("message_stop", object{})
	return body, out.String()
}

// anthropicPrompt returns the parts of a request that the vendor caches, in the
// vendor's order.
func anthropicPrompt(body []byte) ([]any, error) {
	var r struct{ Tools, System, Messages []any }
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("parse Messages API request: %w", err)
	}
	all := append(append(r.Tools, r.System...), r.Messages...)
	removeBreakpoints(all)
	return all, nil
}

// removeBreakpoints removes all cache breakpoints from a JSON value.
func removeBreakpoints(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			removeBreakpoints(e)
		}
	case object:
		delete(v, "cache_control")
		for _, e := range v {
			removeBreakpoints(e)
		}
	}
}
