package anthropic_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/llm/anthropic"
)

// answers is a transport with a response for each request.
type answers func(*http.Request) *http.Response

func (f answers) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		io.Copy(io.Discard, r.Body)
		r.Body.Close()
	}
	res := f(r)
	res.Request = r
	return res, nil
}

func events(body io.Reader) *http.Response {
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {"text/event-stream; charset=utf-8"}}, Body: io.NopCloser(body)}
}

// modelOf returns a model whose server sends this and ends.
func modelOf(t testing.TB, body string, o *anthropic.Options) llm.Model {
	t.Helper()
	return modelAt(t, answers(func(*http.Request) *http.Response { return events(strings.NewReader(body)) }), o)
}

func modelAt(t testing.TB, transport http.RoundTripper, o *anthropic.Options) llm.Model {
	t.Helper()
	if o == nil {
		o = &anthropic.Options{}
	}
	o.Key, o.HTTP = "sk-ant-s3cret", &http.Client{Transport: transport}
	m, err := anthropic.New("claude-opus-5", o)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

var hello = &llm.Request{Messages: []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("Hello")}}}}

// text is a stream's beginning with words in it.
func text(words ...string) string {
	all := append([]string{begin(llm.Usage{Input: 9})}, pieces(0, `{"type":"text","text":""}`, "text_delta", "text", words...)...)
	return stream(all...)
}

func TestStopReasons(t *testing.T) {
	call := stream(append([]string{begin(llm.Usage{})}, pieces(0, `{"type":"tool_use","id":"c","name":"rm","input":{}}`, "input_json_delta", "partial_json", `{"path":"x"}`)...)...)
	for _, c := range []struct {
		body, reason string
		want         llm.Stop
		calls        int
	}{
		{text("hi"), "end_turn", llm.StopEnd, 0},
		{text("hi"), "stop_sequence", llm.StopEnd, 0},
		{text("hi"), "max_tokens", llm.StopLength, 0},
		{text("hi"), "model_context_window_exceeded", llm.StopLength, 0},
		{text("hi"), "refusal", llm.StopRefuse, 0},
		{text("hi"), "pause_turn", llm.StopPause, 0},
		{text("hi"), "something_new", llm.StopEnd, 0},
		{call, "tool_use", llm.StopTools, 1},
		{call, "model_context_window_exceeded", llm.StopLength, 0},
		{call, "something_new", llm.StopLength, 0}, // nothing is called on a guess
	} {
		a, err := llm.Ask(t.Context(), modelOf(t, c.body+end(c.reason, 3), nil), hello, nil)
		if err != nil || a.Stop != c.want || len(a.Calls()) != c.calls || a.Model != "claude-opus-5-x" {
			t.Errorf("%s: %+v, %v", c.reason, a, err)
		}
	}
}

func TestUsageIsNotAddedUp(t *testing.T) {
	const start = `{"type":"message_start","message":{"model":"m","usage":%s}}`
	const finish = `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":%s}`
	for name, c := range map[string]struct {
		start, finish string
		want          llm.Usage
	}{
		"output at the end": {`{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}`,
			`{"output_tokens":7}`, llm.Usage{Input: 10, CacheWrite: 20, CacheRead: 30, Output: 7}},
		"all of it twice": {`{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}`,
			`{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":7}`, llm.Usage{Input: 10, CacheWrite: 20, CacheRead: 30, Output: 7}},
		"input at the end":    {`{"input_tokens":0,"output_tokens":0}`, `{"input_tokens":10,"output_tokens":7}`, llm.Usage{Input: 10, Output: 7}},
		"null and nothing":    {`{"input_tokens":10,"cache_read_input_tokens":null}`, `{"input_tokens":0,"output_tokens":7}`, llm.Usage{Input: 10, Output: 7}},
		"none in the end":     {`{"input_tokens":10,"output_tokens":1}`, `null`, llm.Usage{Input: 10, Output: 1}},
		"details are ignored": {`{"input_tokens":10,"cache_creation":{"ephemeral_5m_input_tokens":4},"output_tokens":1}`, `{"output_tokens":7,"output_tokens_details":{"thinking":3}}`, llm.Usage{Input: 10, Output: 7}},
	} {
		a, err := llm.Ask(t.Context(), modelOf(t, stream(fmt.Sprintf(start, c.start), fmt.Sprintf(finish, c.finish), `{"type":"message_stop"}`), nil), hello, nil)
		if err != nil || a.Usage != c.want {
			t.Errorf("%s: %+v, %v", name, a, err)
		}
	}
}

func TestUnknownEventsAreIgnored(t *testing.T) {
	body := stream(`{"type":"ping"}`, begin(llm.Usage{}), `{"type":"a_new_event","index":{"not":"a number"}}`[:len(`{"type":"a_new_event"`)]+"}") +
		": a comment\n\nevent: ping\ndata: no JSON\n\ndata: [DONE]\n\n" +
		stream(pieces(0, `{"type":"server_tool_use","id":"s","name":"web_search","input":{}}`, "input_json_delta", "partial_json", `{"query":1}`)...) +
		stream(pieces(1, `{"type":"text","text":"","citations":[]}`, "citations_delta", "citation", "x")...) +
		stream(`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":"h"}}`, `{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"i"}}`) +
		end("end_turn", 1)
	a, err := llm.Ask(t.Context(), modelOf(t, body, nil), hello, nil)
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff([]llm.Part{llm.Text("hi")}, a.Message.Parts); d != "" {
		t.Error(d)
	}
}

func TestResponseBlocks(t *testing.T) {
	for name, c := range map[string]struct {
		blocks []string
		want   llm.Part
	}{
		"redacted thoughts":            {pieces(0, `{"type":"redacted_thinking","data":"b3BhcXVl"}`, "", ""), llm.Thinking{Vendor: "anthropic", Redacted: "b3BhcXVl"}},
		"thoughts that are not shown":  {pieces(0, `{"type":"thinking","thinking":"","signature":""}`, "signature_delta", "signature", "ab", "cd"), llm.Thinking{Vendor: "anthropic", Signature: "abcd"}},
		"a call without arguments":     {pieces(0, `{"type":"tool_use","id":"c","name":"now","input":{}}`, "input_json_delta", "partial_json", ""), llm.Call{ID: "c", Name: "now"}},
		"arguments that come at once":  {pieces(0, `{"type":"tool_use","id":"c","name":"at","input":{"b":1,"a":2.50}}`, "", ""), llm.Call{ID: "c", Name: "at", Arguments: `{"b":1,"a":2.50}`}},
		"arguments that are cut":       {pieces(0, `{"type":"tool_use","id":"c","name":"rm","input":{}}`, "input_json_delta", "partial_json", `{"pa`, `th": "/`), llm.Call{ID: "c", Name: "rm", Arguments: `{"path": "/`}},
		"arguments that are no object": {pieces(0, `{"type":"tool_use","id":"c","name":"rm","input":null}`, "input_json_delta", "partial_json", `"all"`), llm.Call{ID: "c", Name: "rm", Arguments: `"all"`}},
	} {
		body := stream(append([]string{begin(llm.Usage{})}, c.blocks...)...) + end("tool_use", 1)
		a, err := llm.Ask(t.Context(), modelOf(t, body, nil), hello, nil)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if d := cmp.Diff([]llm.Part{c.want}, a.Message.Parts); d != "" {
			t.Errorf("%s: %s", name, d)
		}
	}
}

// What breaks in the middle of an answer leaves what had come.
func TestTruncatedResponses(t *testing.T) {
	for name, c := range map[string]struct {
		rest string
		want string
		code int
	}{
		"overloaded":       {stream(`{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`), "Overloaded", 529},
		"an unknown error": {stream(`{"type":"error","error":{"type":"new_error","message":"odd"}}`), "odd", 500},
		"error without":    {"event: error\ndata: {}\n\n", "no reason given", 500},
		"no JSON":          {"event: content_block_delta\ndata: {\"type\n\n", "read event", 0},
		"no such block":    {stream(`{"type":"content_block_delta","index":7,"delta":{"type":"text_delta","text":"x"}}`), "block 7", 0},
		"the end":          {"", "stream ended", 0},
		"half an event":    {"event: message_stop\ndata: {\"type\":\"message_stop\"}\n", "stream ended", 0},
	} {
		t.Run(name, func(t *testing.T) {
			a, err := llm.Ask(t.Context(), modelOf(t, text("half ", "an answer")+c.rest, nil), hello, nil)
			var cut *llm.CutError
			if a != nil || !errors.As(err, &cut) || !strings.Contains(err.Error(), c.want) {
				t.Fatalf("got %v, %v", a, err)
			}
			if cut.Answer.Message.Text() != "half an answer" || cut.Answer.Usage.Input != 9 || cut.Answer.Stop != "" {
				t.Errorf("what is left is %+v", cut.Answer)
			}
			var refused *llm.StatusError
			if errors.As(err, &refused) != (c.code != 0) || refused != nil && refused.Code != c.code {
				t.Errorf("got %v, want the code %d", err, c.code)
			}
		})
	}
}

// A stream that says why it ended, and then ends, is whole.
func TestTheLastEventMayBeMissing(t *testing.T) {
	body, _, _ := strings.Cut(text("hi")+end("end_turn", 3), "event: message_stop")
	a, err := llm.Ask(t.Context(), modelOf(t, body, nil), hello, nil)
	if err != nil || a.Stop != llm.StopEnd || a.Usage.Output != 3 || a.Message.Text() != "hi" {
		t.Errorf("got %+v, %v", a, err)
	}
}

// The server says 200 and then that it has no time: nothing was shown, and it may be
// asked again.
func TestOverloadedBeforeResponse(t *testing.T) {
	overloaded := stream(begin(llm.Usage{}), `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`)
	asked := 0
	m := modelAt(t, answers(func(*http.Request) *http.Response {
		if asked++; asked == 1 {
			return events(strings.NewReader(overloaded))
		}
		return events(strings.NewReader(text("hi") + end("end_turn", 1)))
	}), nil)
	_, err := llm.Ask(t.Context(), m, hello, nil)
	var refused *llm.StatusError
	if !errors.As(err, &refused) || refused.Code != 529 || refused.Kind != "overloaded_error" || !refused.Temporary() {
		t.Fatalf("got %v", err)
	}
	asked = 0
	if _, err := llm.Ask(t.Context(), llm.Retry(m, &llm.RetryOptions{Wait: time.Millisecond}), hello, nil); err != nil || asked != 2 {
		t.Errorf("got %v after %d requests", err, asked)
	}
}

// endless is a reader that repeats a text forever.
type endless struct {
	text string
	left string
	read *int
}

func (e *endless) Read(p []byte) (int, error) {
	if e.left == "" {
		e.left = e.text
	}
	n := copy(p, e.left)
	e.left = e.left[n:]
	*e.read += n
	return n, nil
}

func TestResponseLimits(t *testing.T) {
	for name, more := range map[string]string{
		"an endless line":   strings.Repeat("x", 1<<16),
		"lines of an event": "data: " + strings.Repeat("x", 1<<16) + "\n",
		"events":            stream(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"` + strings.Repeat("x", 1<<16) + `"}}`),
		"comments":          ":" + strings.Repeat("x", 1<<16) + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			var read int
			m := modelAt(t, answers(func(*http.Request) *http.Response {
				return events(io.MultiReader(strings.NewReader(text("hi")), &endless{text: more, read: &read}))
			}), nil)
			_, err := llm.Ask(t.Context(), m, hello, nil)
			var cut *llm.CutError
			if !errors.As(err, &cut) || !strings.Contains(err.Error(), "too long (limit 64 MiB") || read > 65<<20 {
				t.Errorf("got %.200v after %d bytes", err, read)
			}
		})
	}
}

func TestSilentStreamTimesOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := modelAt(t, answers(func(r *http.Request) *http.Response {
			in, out := io.Pipe()
			go func() {
				for range 5 { // each part restarts the timeout
					time.Sleep(40 * time.Second)
					io.WriteString(out, ": still there\n\n")
				}
				<-r.Context().Done()
				out.CloseWithError(r.Context().Err())
			}()
			return events(in)
		}), &anthropic.Options{Idle: time.Minute})
		start := time.Now()
		_, err := llm.Ask(t.Context(), m, hello, nil)
		if err == nil || !strings.Contains(err.Error(), "sent no data before") || time.Since(start) != 260*time.Second {
			t.Errorf("got %v after %v", err, time.Since(start))
		}
	})
}

func TestNonStreamResponsesAreDetected(t *testing.T) {
	page := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "<!doctype html><title>Log in</title>")
	}))
	defer page.Close()
	m, err := anthropic.New("m", &anthropic.Options{BaseURL: page.URL, HTTP: page.Client()})
	if err != nil {
		t.Fatal(err)
	}
	_, err = llm.Ask(t.Context(), m, hello, nil)
	if err == nil || !strings.Contains(err.Error(), "text/html") || !strings.Contains(err.Error(), "base URL") {
		t.Errorf("got %v", err)
	}
}
