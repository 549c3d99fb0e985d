package loadouttest

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/llm"
)

// Model tests a language model. It sends m five short requests, one of them
// with a context that is done. m must respond to the others. Model checks the
// form of the responses, but not their content. A response may have up to 200
// tokens.
func Model(t *testing.T, m llm.Model) {
	t.Run("name", func(t *testing.T) { testModelName(t, m) })
	t.Run("answer", func(t *testing.T) { testModelAnswer(t, m) })
	t.Run("request unchanged", func(t *testing.T) { testModelRequest(t, m) })
	t.Run("stream stopped early", func(t *testing.T) { testStoppedStream(t, m) })
	t.Run("context ended", func(t *testing.T) { testCanceledStream(t, m) })
}

func testModelName(t *testing.T, m llm.Model) {
	if vendor, name, ok := strings.Cut(m.Name(), ":"); !ok || vendor == "" || name == "" {
		t.Errorf("name %q, want vendor:name", m.Name())
	}
}

// testModelAnswer checks that the events of a stream match its final response.
func testModelAnswer(t *testing.T, m llm.Model) {
	var text strings.Builder
	var calls []llm.CallDelta
	var done *llm.Done
	for e, err := range m.Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		if done != nil {
			t.Fatalf("event %T after Done", e)
		}
		switch e := e.(type) {
		case llm.TextDelta:
			text.WriteString(string(e))
		case llm.CallDelta:
			calls = addCallDelta(t, calls, e)
		case llm.ThinkingDelta:
		case llm.Done:
			done = &e
		default:
			t.Fatalf("event of an unknown type %T", e)
		}
	}
	if done == nil {
		t.Fatal("the stream ended without Done or an error")
	}
	checkAnswer(t, &done.Answer, text.String(), calls)
}

func addCallDelta(t *testing.T, calls []llm.CallDelta, d llm.CallDelta) []llm.CallDelta {
	t.Helper()
	switch {
	case d.Index < len(calls) && d.Index >= 0:
		calls[d.Index].Arguments += d.Arguments
	case d.Index > len(calls) || d.Index < 0 || d.ID == "" || d.Name == "":
		t.Errorf("first piece of a call is %+v, want index %d, an ID and a name", d, len(calls))
	default:
		calls = append(calls, d)
	}
	return calls
}

// checkAnswer compares a response with the streamed text and tool calls.
func checkAnswer(t *testing.T, a *llm.Answer, text string, calls []llm.CallDelta) {
	if a.Message.Role != llm.Assistant {
		t.Errorf("role of the answer %q, want %q", a.Message.Role, llm.Assistant)
	}
	if got := a.Message.Text(); got != text {
		t.Errorf("text of the answer %q, but streamed %q", got, text)
	}
	var got []llm.CallDelta
	for _, p := range a.Message.Parts {
		if c, ok := p.(llm.Call); ok {
			got = append(got, llm.CallDelta{Index: len(got), ID: c.ID, Name: c.Name, Arguments: c.Arguments})
		}
	}
	if diff := cmp.Diff(calls, got); diff != "" {
		t.Errorf("calls of the answer differ from the streamed ones (-streamed +answer):\n%s", diff)
	}
	switch a.Stop {
	case llm.StopEnd, llm.StopLength, llm.StopRefuse, llm.StopPause:
	case llm.StopTools:
		if len(calls) == 0 {
			t.Error("stop reason tools, but no calls")
		}
	default:
		t.Errorf("unknown stop reason %q", a.Stop)
	}
}

// testModelRequest checks that a model does not modify a request and that the
// request can be sent again.
func testModelRequest(t *testing.T, m llm.Model) {
	r := newRequest()
	for range 2 {
		if _, err := llm.Ask(t.Context(), m, r, nil); err != nil {
			t.Fatal(err)
		}
	}
	if diff := cmp.Diff(newRequest(), r); diff != "" {
		t.Errorf("the model changed the request (-before +after):\n%s", diff)
	}
}

// testStoppedStream stops a stream after its first event. The range loop panics if
// the model continues.
func testStoppedStream(t *testing.T, m llm.Model) {
	for _, err := range m.Stream(t.Context(), newRequest()) {
		if err != nil {
			t.Fatal(err)
		}
		break
	}
}

func testCanceledStream(t *testing.T, m llm.Model) {
	cause := errors.New("canceled by the test")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(cause)
	var last error
	for e, err := range m.Stream(ctx, newRequest()) {
		if last != nil {
			t.Fatalf("event %T after the error %v", e, last)
		}
		last = err
	}
	if !errors.Is(last, cause) {
		t.Errorf("error after the context ended: %v, want one that wraps its cause", last)
	}
}

func newRequest() *llm.Request {
	return &llm.Request{
		Instructions: "Answer in one short sentence.",
		Messages:     []llm.Message{{Role: llm.User, Parts: []llm.Part{llm.Text("Say hello.")}}},
		MaxTokens:    200,
	}
}
