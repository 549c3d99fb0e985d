package conversation

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/loadout-dev/loadout/llm"
)

// RoundTrip implements [http.RoundTripper] as the scripted vendor. It stores the request and
// returns an event stream of the Messages API.
func (p *play) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	r.Body.Close()
	p.bodies = append(p.bodies, body)
	a := p.nextAnswer()
	return &http.Response{
		StatusCode: http.StatusOK, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body:   io.NopCloser(strings.NewReader(encodeStream(&a))),
	}, nil
}

// encodeStream encodes a model response as the vendor's server-sent events.
func encodeStream(a *llm.Answer) string {
	var b strings.Builder
	emit := func(name string, members map[string]any) {
		members["type"] = name
		data, err := json.Marshal(members)
		if err != nil {
			panic(err) // cannot fail for texts and numbers
		}
		fmt.Fprintf(&b, "event: %s\ndata: %s\n\n", name, data)
	}
	type object = map[string]any
	usage := object{"input_tokens": 1, "output_tokens": 1}
	emit("message_start", object{"message": object{"id": "msg_1", "type": "message", "role": "assistant", "model": "scripted", "content": []any{}, "usage": usage}})
	for i, part := range a.Message.Parts {
		begin, delta := object{"type": "text", "text": ""}, object{"type": "text_delta"}
		switch part := part.(type) {
		case llm.Text:
			delta["text"] = string(part)
		case llm.Call:
			begin = object{"type": "tool_use", "id": part.ID, "name": part.Name, "input": object{}}
			delta = object{"type": "input_json_delta", "partial_json": part.Arguments}
		}
		emit("content_block_start", object{"index": i, "content_block": begin})
		emit("content_block_delta", object{"index": i, "delta": delta})
		emit("content_block_stop", object{"index": i})
	}
	reason := map[llm.Stop]string{llm.StopTools: "tool_use", llm.StopEnd: "end_turn"}[a.Stop]
	emit("message_delta", object{"delta": object{"stop_reason": reason}, "usage": usage})
	emit("message_stop", object{})
	return b.String()
}
