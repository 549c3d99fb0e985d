// Package llmtest provides a conformance test for implementations of
// [llm.Model]. The test runs an implementation against a server that uses the
// vendor's format.
//
// A vendor's test describes the format and calls [Run]:
//
//	func TestModel(t *testing.T) {
//		llmtest.Run(t, &llmtest.Vendor{Open: …, Answer: …, Refuse: …, Prompt: …})
//	}
//
// Each vendor's package tests its own features, with a [Server] if necessary.
package llmtest

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"maps"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
)

// Key is the API key of the tested models. It must not appear in any error.
const Key = "sk-llmtest-0123456789abcdef"

// Vendor describes a vendor's API format.
type Vendor struct {
	// Open returns a model that sends requests to url with [Key] and the given
	// client.
	Open func(url string, client *http.Client) (llm.Model, error)
	// Answer returns a turn as a stream in two parts: the content, and the end
	// with the stop reason. Text and arguments should be split into several
	// pieces.
	Answer func(turn *Turn, stop llm.Stop) (body, end string)
	// Refuse returns the body of an error response with the turn's message.
	Refuse func(turn *Turn) string
	// Prompt extracts the prompt from the body of a request. It returns JSON
	// values in the order in which they are cached (tools, instructions,
	// messages), without cache breakpoints.
	Prompt func(body []byte) ([]any, error)
	// NoThinking reports that thinking is never sent back to the vendor.
	NoThinking bool
	// NoRefusal reports that the format cannot express [llm.StopRefuse].
	NoRefusal bool
}

// Run tests a vendor's implementation of [llm.Model].
func Run(t *testing.T, v *Vendor) {
	for name, test := range map[string]func(*testing.T, *Vendor){
		"Text":              testText,
		"ParallelCalls":     testParallelCalls,
		"Thinking":          testThinking,
		"CutByLength":       testCutByLength,
		"CutStream":         testCutStream,
		"RetryBeforeOutput": testRetryBeforeOutput,
		"Refusal":           testRefusal,
		"KeyRefused":        testKeyRefused,
		"TooMany":           testTooMany,
		"EndsWithContext":   testEndsWithContext,
		"CutMidResponse":    testCutMidResponse,
		"ConsumerStops":     testConsumerStops,
		"NotReached":        testNotReached,
		"ImageResult":       testImageResult,
		"PromptExtends":     testPromptExtends,
		"Schemas":           testSchemas,
		"RequestIsKept":     testRequestIsKept,
		"Concurrent":        testConcurrent,
	} {
		t.Run(name, func(t *testing.T) { test(t, v) })
	}
}

// open starts a server with a script and returns a model that sends requests to
// the server.
func open(t *testing.T, v *Vendor, script ...Turn) (llm.Model, *Server) {
	t.Helper()
	s := NewServer(t, v, script...)
	return model(t, v, s.URL), s
}

func model(t *testing.T, v *Vendor, url string) llm.Model {
	t.Helper()
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	m, err := v.Open(url, &http.Client{Transport: transport})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

// conversation returns a request with a tool, instructions and a user message
// with parts.
func conversation(parts ...llm.Part) *llm.Request {
	if len(parts) == 0 {
		parts = []llm.Part{llm.Text("How is the weather in Rome?")}
	}
	return &llm.Request{
		Instructions: "Answer briefly.",
		Tools: []llm.Tool{{Name: "weather", Description: "The weather of a place.",
			InputSchema: json.RawMessage(`{"type":"object","properties":{"place":{"type":"string"}},"required":["place"]}`)}},
		Messages: []llm.Message{{Role: llm.User, Parts: parts}},
	}
}

func ask(t *testing.T, m llm.Model, r *llm.Request, emit func(llm.Event)) *llm.Answer {
	t.Helper()
	a, err := llm.Ask(t.Context(), m, r, emit)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func equal(t *testing.T, what string, got, want any) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("%s (-want +got):\n%s", what, d)
	}
}

var rome, oslo = llm.Call{ID: "call_1", Name: "weather", Arguments: `{"place": "Rome"}`}, llm.Call{ID: "call_2", Name: "weather", Arguments: `{"place":"Oslo"}`}

func testText(t *testing.T, v *Vendor) {
	usage := llm.Usage{Input: 7, CacheRead: 5, Output: 3}
	m, s := open(t, v, Turn{Text: []string{"It is ", "sunny ☀", "."}, Usage: usage})
	var words string
	a := ask(t, m, conversation(), func(e llm.Event) {
		if d, ok := e.(llm.TextDelta); ok {
			words += string(d)
		}
	})
	equal(t, "message", a.Message, llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text("It is sunny ☀.")}})
	equal(t, "deltas", words, "It is sunny ☀.")
	equal(t, "usage", a.Usage, usage)
	equal(t, "stop", a.Stop, llm.StopEnd)
	if len(s.Bodies()) != 1 || !strings.Contains(string(s.Bodies()[0]), "Answer briefly.") {
		t.Errorf("%d requests, with the instructions: %s", len(s.Bodies()), s.Bodies())
	}
	if vendor, name, _ := strings.Cut(m.Name(), ":"); vendor == "" || name == "" {
		t.Errorf("model name is %q", m.Name())
	}
}

func testParallelCalls(t *testing.T, v *Vendor) {
	m, _ := open(t, v, Turn{Text: []string{"I look."}, Calls: []llm.Call{rome, oslo}})
	var pieces [2]llm.Call
	a := ask(t, m, conversation(), func(e llm.Event) {
		if d, ok := e.(llm.CallDelta); ok {
			if pieces[d.Index].ID == "" && d.ID == "" {
				t.Errorf("the first piece of call %d has no ID", d.Index)
			}
			pieces[d.Index].ID += d.ID
			pieces[d.Index].Name += d.Name
			pieces[d.Index].Arguments += d.Arguments
		}
	})
	equal(t, "calls", a.Calls(), []llm.Call{rome, oslo})
	equal(t, "deltas", pieces[:], []llm.Call{rome, oslo})
	equal(t, "stop", a.Stop, llm.StopTools)
	equal(t, "words", a.Message.Text(), "I look.")
}

func testThinking(t *testing.T, v *Vendor) {
	if v.NoThinking {
		t.Skip("thoughts do not go back to the vendor")
	}
	m, s := open(t, v, Turn{Thinking: "Rome is in Italy.", Signature: "c2lnbmVk", Calls: []llm.Call{rome}}, Turn{Text: []string{"Sunny."}})
	r := conversation()
	r.Thinking = 2000
	var thoughts string
	a := ask(t, m, r, func(e llm.Event) {
		if d, ok := e.(llm.ThinkingDelta); ok {
			thoughts += string(d)
		}
	})
	equal(t, "deltas", thoughts, "Rome is in Italy.")
	strange := llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Thinking{Vendor: "another", Text: "a stranger's thought", Signature: "x"}, llm.Text("I look.")}}
	r.Messages = append(r.Messages, strange, a.Message, results(rome))
	ask(t, m, r, nil)
	sent := string(s.Bodies()[1])
	if !strings.Contains(sent, "Rome is in Italy.") || !strings.Contains(sent, "c2lnbmVk") && thinking(a).Signature != "" {
		t.Errorf("thinking is not sent back unchanged: %s", sent)
	}
	if strings.Contains(sent, "stranger") {
		t.Errorf("thinking of another vendor is sent: %s", sent)
	}
	vendor, _, _ := strings.Cut(m.Name(), ":")
	equal(t, "vendor of the thoughts", thinking(a).Vendor, vendor)
}

func thinking(a *llm.Answer) llm.Thinking {
	for _, p := range a.Message.Parts {
		if th, ok := p.(llm.Thinking); ok {
			return th
		}
	}
	return llm.Thinking{}
}

// results returns a message with a result for each call.
func results(calls ...llm.Call) llm.Message {
	out := llm.Message{Role: llm.User}
	for _, c := range calls {
		out.Parts = append(out.Parts, llm.Result{Call: c.ID, Parts: []llm.Part{llm.Text("Sunny in " + c.Arguments)}})
	}
	return out
}

// testCutByLength checks that a tool call truncated by the token limit is
// dropped, so that no tool receives incomplete arguments.
func testCutByLength(t *testing.T, v *Vendor) {
	cut := llm.Call{ID: "call_1", Name: "weather", Arguments: `{"place": "Ro`}
	m, s := open(t, v, Turn{Calls: []llm.Call{cut}, Stop: llm.StopLength}, Turn{Text: []string{"Sorry."}})
	r := conversation()
	a := ask(t, m, r, nil)
	equal(t, "stop", a.Stop, llm.StopLength)
	equal(t, "calls that may be made", a.Calls(), []llm.Call(nil))
	equal(t, "parts", a.Message.Parts, []llm.Part{cut})

	r.Messages = append(r.Messages, a.Message, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{Call: cut.ID, Error: true, Parts: []llm.Part{llm.Text("The call was cut.")}}}})
	ask(t, m, r, nil)
	if !json.Valid(s.Bodies()[1]) {
		t.Errorf("truncated call makes the next request invalid JSON: %s", s.Bodies()[1])
	}
}

func testCutStream(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Text: []string{"It is ", "sun"}, Cut: true})
	a, err := llm.Ask(t.Context(), llm.Retry(m, nil), conversation(), nil)
	var cut *llm.CutError
	if a != nil || !errors.As(err, &cut) || cut.Answer.Message.Text() != "It is sun" {
		t.Fatalf("got %v, %v", a, err)
	}
	if n := len(s.Bodies()); n != 1 {
		t.Errorf("%d requests: a request was repeated after output", n)
	}
}

// testRetryBeforeOutput checks that a request is retried if the response fails before
// any part of it was shown.
func testRetryBeforeOutput(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Cut: true}, Turn{Text: []string{"Sunny."}})
	a, err := llm.Ask(t.Context(), llm.Retry(m, &llm.RetryOptions{Wait: time.Millisecond}), conversation(), nil)
	if err != nil || a.Message.Text() != "Sunny." || len(s.Bodies()) != 2 {
		t.Errorf("got %v, %v after %d requests", a, err, len(s.Bodies()))
	}
}

func testRefusal(t *testing.T, v *Vendor) {
	if v.NoRefusal {
		t.Skip("the vendor has no refusal")
	}
	m, _ := open(t, v, Turn{Text: []string{"I will not."}, Stop: llm.StopRefuse})
	equal(t, "stop", ask(t, m, conversation(), nil).Stop, llm.StopRefuse)
}

func testKeyRefused(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Status: 401, Message: "no such key: " + Key})
	_, err := llm.Ask(t.Context(), llm.Retry(m, nil), conversation(), nil)
	var refused *llm.StatusError
	if !errors.As(err, &refused) || refused.Code != 401 || !strings.Contains(refused.Message, "no such key") || len(s.Bodies()) != 1 {
		t.Fatalf("got %v after %d requests", err, len(s.Bodies()))
	}
	if strings.Contains(err.Error(), Key) {
		t.Errorf("error contains the key: %v", err)
	}
}

func testTooMany(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Status: 429, After: "17", Message: "slow down"}, Turn{Status: 503}, Turn{Text: []string{"Sunny."}})
	_, err := llm.Ask(t.Context(), m, conversation(), nil)
	var refused *llm.StatusError
	if !errors.As(err, &refused) || refused.After != 17*time.Second || !refused.Temporary() || len(s.Bodies()) != 1 {
		t.Fatalf("got %v after %d requests", err, len(s.Bodies()))
	}
	a, err := llm.Ask(t.Context(), llm.Retry(m, &llm.RetryOptions{Wait: time.Millisecond}), conversation(), nil)
	if err != nil || a.Message.Text() != "Sunny." || len(s.Bodies()) != 3 {
		t.Errorf("got %v, %v after %d requests", a, err, len(s.Bodies()))
	}
}

var errStopped = errors.New("canceled by test")

func testEndsWithContext(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Hang: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	go func() {
		<-s.hangs
		cancel(errStopped)
	}()
	if _, err := llm.Ask(ctx, llm.Retry(m, nil), conversation(), nil); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
	<-s.done
}

// testCutMidResponse checks that the received part of a response is returned, so
// that it can be shown.
func testCutMidResponse(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Text: []string{"It is"}, Hang: true})
	ctx, cancel := context.WithCancelCause(t.Context())
	_, err := llm.Ask(ctx, llm.Retry(m, nil), conversation(), func(llm.Event) { cancel(errStopped) })
	if !errors.Is(err, errStopped) || len(s.Bodies()) != 1 {
		t.Errorf("got %v after %d requests", err, len(s.Bodies()))
	}
	<-s.done
}

func testConsumerStops(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Text: []string{"It is"}, Hang: true})
	for _, err := range m.Stream(t.Context(), conversation()) {
		if err != nil {
			t.Error(err)
		}
		break
	}
	<-s.done
}

func testNotReached(t *testing.T, v *Vendor) {
	nobody := httptest.NewServer(nil)
	nobody.Close()
	m := model(t, v, nobody.URL)
	_, err := llm.Ask(t.Context(), m, conversation(), nil)
	var refused *llm.StatusError
	var cut *llm.CutError
	if err == nil || errors.As(err, &refused) || errors.As(err, &cut) || strings.Contains(err.Error(), Key) {
		t.Errorf("got %v", err)
	}
}

func testImageResult(t *testing.T, v *Vendor) {
	picture := []byte("\x89PNG\r\n\x1a\nnot much of a picture")
	m, s := open(t, v, Turn{Text: []string{"Sunny."}})
	r := conversation()
	r.Messages = append(r.Messages,
		llm.Message{Role: llm.Assistant, Parts: []llm.Part{rome}},
		llm.Message{Role: llm.User, Parts: []llm.Part{llm.Result{Call: rome.ID, Parts: []llm.Part{llm.Text("As you see."), llm.Image{MIMEType: "image/png", Data: picture}}}}},
	)
	ask(t, m, r, nil)
	sent := string(s.Bodies()[0])
	for _, want := range []string{base64.StdEncoding.EncodeToString(picture), "image/png", "As you see."} {
		if !strings.Contains(sent, want) {
			t.Errorf("%q is not sent: %s", want, sent)
		}
	}
}

// testPromptExtends checks that the prompt of each request starts with the prompt
// of the previous request.
func testPromptExtends(t *testing.T, v *Vendor) {
	m, s := open(t, v,
		Turn{Text: []string{"I look."}, Calls: []llm.Call{rome, oslo}},
		Turn{Thinking: "Both.", Signature: "c2ln", Calls: []llm.Call{rome}},
		Turn{Text: []string{"Sunny in both."}},
		Turn{Text: []string{"You are welcome."}},
	)
	r := conversation()
	next := func(more ...llm.Message) {
		r.Messages = append(r.Messages, ask(t, m, r, nil).Message)
		r.Messages = append(r.Messages, more...)
	}
	next(results(rome, oslo), llm.Message{Role: llm.Notice, Parts: []llm.Part{llm.Text("The weather service ends at noon.")}})
	next(results(rome))
	next(llm.Message{Role: llm.Notice, Parts: []llm.Part{llm.Text("A skill was added.")}}, llm.Message{Role: llm.User, Parts: []llm.Part{llm.Text("Thanks!")}})
	next()
	prompts := s.Prompts()
	if len(prompts) != 4 {
		t.Fatalf("%d requests", len(prompts))
	}
	for i := range prompts[1:] {
		before, after := prompts[i], prompts[i+1]
		if len(after) <= len(before) || !reflect.DeepEqual(after[:len(before)], before) {
			t.Errorf("request %d does not begin with the one before:\n%s", i+2, cmp.Diff(before, after))
		}
	}
	if last := string(s.Bodies()[3]); !strings.Contains(last, "ends at noon") || !strings.Contains(last, "A skill was added.") {
		t.Errorf("notices are not sent: %s", last)
	}
}

// testSchemas checks that a tool's schema is sent completely.
func testSchemas(t *testing.T, v *Vendor) {
	const schema = `{"type":"object","properties":{"at":{"$ref":"#/$defs/point"},"unit":{"oneOf":[{"const":"C"},{"const":"F"}]}},"required":["at"],"additionalProperties":false,"$defs":{"point":{"type":"object","properties":{"x":{"type":"number"}}}}}`
	m, s := open(t, v, Turn{Text: []string{"Sunny."}})
	r := conversation()
	r.Tools = append(r.Tools, llm.Tool{Name: "place", InputSchema: json.RawMessage(schema)}, llm.Tool{Name: "now", InputSchema: json.RawMessage(`{"type":"object"}`)})
	ask(t, m, r, nil)
	var sent, want any
	if err := errors.Join(json.Unmarshal(s.Bodies()[0], &sent), json.Unmarshal([]byte(schema), &want)); err != nil {
		t.Fatal(err)
	}
	if !contains(sent, want) || strings.Contains(string(s.Bodies()[0]), `"required":null`) {
		t.Errorf("schema is not sent unchanged: %s", s.Bodies()[0])
	}
}

// contains reports whether a JSON value equals or contains another value.
func contains(v, want any) bool {
	if reflect.DeepEqual(v, want) {
		return true
	}
	switch v := v.(type) {
	case []any:
		return slices.ContainsFunc(v, func(e any) bool { return contains(e, want) })
	case map[string]any:
		return slices.ContainsFunc(slices.Collect(maps.Values(v)), func(e any) bool { return contains(e, want) })
	}
	return false
}

func testRequestIsKept(t *testing.T, v *Vendor) {
	m, s := open(t, v, Turn{Text: []string{"Sunny."}})
	r := conversation()
	r.Messages = append(r.Messages, llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(""), rome}}, results(rome))
	ask(t, m, r, nil)
	ask(t, m, r, nil)
	if b := s.Bodies(); string(b[0]) != string(b[1]) {
		t.Errorf("two encodings of the same request:\n%s\n%s", b[0], b[1])
	}
}

func testConcurrent(t *testing.T, v *Vendor) {
	m, _ := open(t, v, Turn{Text: []string{"It is ", "sunny."}, Calls: []llm.Call{rome}})
	r := conversation()
	done := make(chan error)
	const many = 8
	for range many {
		go func() {
			a, err := llm.Ask(t.Context(), m, r, nil)
			if err == nil && (a.Message.Text() != "It is sunny." || len(a.Calls()) != 1) {
				err = errors.New("unexpected answer: " + a.Message.Text())
			}
			done <- err
		}()
	}
	for range many {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}
