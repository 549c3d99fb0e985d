package anthropic

import (
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/redact"
	"github.com/loadout-dev/loadout/llm"
)

const (
	seedText = `event: message_start
data: {"type":"message_start","message":{"model":"m","usage":{"input_tokens":1}}}

data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":"h"}}

data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"i"}}

`
	seedCall = `data: {"type":"content_block_start","index":-1,"content_block":{"type":"tool_use","id":"c","name":"rm","input":{"a":1}}}

data: {"type":"content_block_delta","index":-1,"delta":{"type":"input_json_delta","partial_json":"{"}}

`
	seedEnd = `data: {"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":1}}

data: {"type":"message_stop"}

`
)

// Every stream ends once, with an answer or an error, and the yielded text is
// the text of that end.
func FuzzStream(f *testing.F) {
	f.Add(seedText + seedEnd)
	f.Add(seedText + seedCall)
	f.Add(seedCall + "event: ping\ndata\n\n: a comment\n\n" + seedEnd)
	f.Add("event: error\ndata: {\"error\":null}\n\ndata: null\n\n")
	m := &model{name: "m", redactor: redact.New(), log: slog.New(slog.DiscardHandler)}
	f.Fuzz(func(t *testing.T, body string) {
		ends, reported := 0, ""
		m.read(t.Context(), &http.Response{Body: io.NopCloser(strings.NewReader(body))}, func(e llm.Event, err error) bool {
			last := reported
			var cut *llm.CutError
			switch e := e.(type) {
			case llm.TextDelta:
				reported += string(e)
				return true
			case llm.Done:
				ends, last = ends+1, e.Message.Text()
			}
			if err != nil {
				ends++
			}
			if errors.As(err, &cut) {
				last = cut.Answer.Message.Text()
			}
			if last != reported {
				t.Errorf("got %q, and in the end %q", reported, last)
			}
			return true
		})
		if ends != 1 {
			t.Errorf("%d ends", ends)
		}
	})
}
