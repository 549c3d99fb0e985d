package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
	"github.com/loadout-dev/loadout/llm/llmtest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModel(t *testing.T) {
	for name, o := range map[string]anthropic.Options{
		"notices of the user":   {Notices: anthropic.NoticesUser},
		"notices of the system": {Notices: anthropic.NoticesSystem},
	} {
		t.Run(name, func(t *testing.T) { llmtest.Run(t, wire(o)) })
	}
}

// wire is the form of the Messages API.
func wire(o anthropic.Options) *llmtest.Vendor {
	return &llmtest.Vendor{
		Open: func(url string, client *http.Client) (llm.Model, error) {
			o := o
			o.Key, o.BaseURL, o.HTTP = llmtest.Key, url, client
			return anthropic.New("claude-opus-5", &o)
		},
		Answer: answer,
		Refuse: func(turn *llmtest.Turn) string {
			return fmt.Sprintf(`{"type":"error","error":{"type":"some_error","message":%s}}`, quoted(turn.Message))
		},
		Prompt: prompt,
	}
}

// stream writes events of a stream, each a JSON object with a type.
func stream(events ...string) string {
	var out strings.Builder
	for _, data := range events {
		var e struct{ Type string }
		if err := json.Unmarshal([]byte(data), &e); err != nil {
			panic(err)
		}
		out.WriteString(llmtest.SSE(e.Type, data))
	}
	return out.String()
}

func quoted(v any) string {
	data, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return string(data)
}

var reasons = map[llm.Stop]string{
	llm.StopEnd: "end_turn", llm.StopTools: "tool_use", llm.StopLength: "max_tokens", llm.StopRefuse: "refusal", llm.StopPause: "pause_turn",
}

func begin(u llm.Usage) string {
	return fmt.Sprintf(`{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-opus-5-x","content":[],"usage":{"input_tokens":%d,"cache_read_input_tokens":%d,"cache_creation_input_tokens":%d,"output_tokens":1}}}`,
		u.Input, u.CacheRead, u.CacheWrite)
}

func end(reason string, output int) string {
	return stream(fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%s,"stop_sequence":null},"usage":{"output_tokens":%d}}`, quoted(reason), output), `{"type":"message_stop"}`)
}

// pieces writes a block as it comes: its beginning, deltas, and its end.
func pieces(index int, block, deltaType, member string, parts ...string) []string {
	out := []string{fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, index, block)}
	for _, p := range parts {
		out = append(out, fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":%q,%q:%s}}`, index, deltaType, member, quoted(p)))
	}
	return append(out, fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, index))
}

func answer(turn *llmtest.Turn, stop llm.Stop) (body, ending string) {
	var all []string
	index := 0
	add := func(block, deltaType, member string, parts ...string) {
		all = append(all, pieces(index, block, deltaType, member, parts...)...)
		index++
	}
	all = append(all, begin(turn.Usage), `{"type":"ping"}`)
	if turn.Thinking != "" {
		half := len(turn.Thinking) / 2
		thought := pieces(index, `{"type":"thinking","thinking":"","signature":""}`, "thinking_delta", "thinking", turn.Thinking[:half], turn.Thinking[half:])
		signed := fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"signature_delta","signature":%s}}`, index, quoted(turn.Signature))
		last := len(thought) - 1
		all = append(append(append(all, thought[:last]...), signed), thought[last])
		index++
	}
	if len(turn.Text) > 0 {
		add(`{"type":"text","text":""}`, "text_delta", "text", turn.Text...)
	}
	for _, c := range turn.Calls {
		half := len(c.Arguments) / 2
		add(fmt.Sprintf(`{"type":"tool_use","id":%q,"name":%q,"input":{}}`, c.ID, c.Name), "input_json_delta", "partial_json", "", c.Arguments[:half], c.Arguments[half:])
	}
	return stream(all...), end(reasons[stop], turn.Usage.Output)
}

// prompt is what the vendor caches, in its order.
func prompt(body []byte) ([]any, error) {
	var r struct{ Tools, System, Messages []any }
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, err
	}
	all := append(append(r.Tools, r.System...), r.Messages...)
	unmark(all)
	return all, nil
}

// unmark takes the marks for the cache out.
func unmark(v any) {
	switch v := v.(type) {
	case []any:
		for _, e := range v {
			unmark(e)
		}
	case map[string]any:
		delete(v, "cache_control")
		for _, e := range v {
			unmark(e)
		}
	}
}
