package openai_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/openai"
)

type answering string

func (a answering) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream"}}, Body: io.NopCloser(strings.NewReader(string(a)))}, nil
}

// FuzzAnyStream checks for any stream that the deltas make the whole response, and that
// each call has a unique ID and a name.
func FuzzAnyStream(f *testing.F) {
	f.Add("data: {\"choices\":[{\"delta\":{\"content\":\"a\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
	f.Add("data:{\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":0,\"id\":\"a\",\"function\":{\"name\":\"f\",\"arguments\":\"{}\"}},{\"id\":\"a\",\"function\":{\"name\":\"g\"}},{\"index\":1}]},\"finish_reason\":\"tool_calls\"}]}\ndata: [DONE]")
	f.Add("data: {\"choices\":[{\"delta\":{\"reasoning\":\"a\",\"refusal\":\"b\"}}],\"usage\":{\"prompt_tokens\":-1}}\r\n: x\r\ndata: {\"error\":\"x\"}\r\n")
	f.Fuzz(func(t *testing.T, stream string) {
		m := newModel(t, "m", &openai.Options{HTTP: &http.Client{Transport: answering(stream)}})
		var text, thinking string
		var calls []llm.Call
		a, err := llm.Ask(t.Context(), m, hello, func(e llm.Event) {
			switch e := e.(type) {
			case llm.TextDelta:
				text += string(e)
			case llm.ThinkingDelta:
				thinking += string(e)
			case llm.CallDelta:
				for len(calls) <= e.Index {
					calls = append(calls, llm.Call{})
				}
				calls[e.Index].ID += e.ID
				calls[e.Index].Name += e.Name
				calls[e.Index].Arguments += e.Arguments
			}
		})
		if err != nil {
			return
		}
		var whole []llm.Call
		ids := map[string]bool{}
		for _, p := range a.Message.Parts {
			switch p := p.(type) {
			case llm.Thinking:
				thinking = strings.TrimPrefix(thinking, p.Text)
			case llm.Call:
				if whole = append(whole, p); ids[p.ID] || p.ID == "" || p.Name == "" {
					t.Errorf("%+v", p)
				}
				ids[p.ID] = true
			}
		}
		if diff := cmp.Diff(whole, calls); diff != "" || a.Message.Text() != text || thinking != "" {
			t.Errorf("%s%q reported as %q, %q", diff, a.Message.Text(), text, thinking)
		}
	})
}
