package anthropic_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout/internal/llm/llmtest"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestModel(t *testing.T) {
	for name, o := range map[string]anthropic.Options{
		"notices of the user":   {},
		"notices of the system": {SystemNotices: true},
	} {
		t.Run(name, func(t *testing.T) { llmtest.Run(t, wire(o)) })
	}
}

// wire is the form of the Messages API.
func wire(o anthropic.Options) *llmtest.Vendor {
	v := llmtest.Anthropic()
	v.Open = func(url string, client *http.Client) (llm.Model, error) {
		o := o
		o.Key, o.BaseURL, o.HTTP = llmtest.Key, url, client
		return anthropic.New("claude-opus-5", &o)
	}
	return v
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
