package replay_test

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/llm/replay"
	"github.com/loadout-dev/loadout/llm"
)

// TestRoundTrip checks for any text that a replay equals the recording, and that
// different requests have different digests.
func TestRoundTrip(t *testing.T) {
	dir := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		sub, err := os.MkdirTemp(dir, "")
		if err != nil {
			t.Fatal(err)
		}
		r, other, m := drawRequest(t, "request"), drawRequest(t, "other"), drawAnswer(t)
		rec, err := replay.Record(m, sub, nil)
		if err != nil {
			t.Fatal(err)
		}
		want, err := stream(context.Background(), rec, r)
		if err != nil {
			t.Fatal(err)
		}
		again, err := replay.Open(sub)
		if err != nil {
			t.Fatal(err)
		}
		got, err := stream(context.Background(), again, r)
		if err != nil || !cmp.Equal(want, got, cmpopts.EquateEmpty()) {
			t.Fatalf("%v:\n%s", err, cmp.Diff(want, got))
		}
		equal := cmp.Equal(r, other, cmpopts.EquateEmpty())
		if _, err := stream(context.Background(), again, other); (err == nil) != equal {
			t.Fatalf("another request: %v", err)
		}
	})
}

func drawRequest(t *rapid.T, name string) *llm.Request {
	words := rapid.String()
	tools := rapid.Custom(func(t *rapid.T) llm.Tool {
		schema, _ := json.Marshal(map[string]any{"type": "object", "description": words.Draw(t, "schema")})
		return llm.Tool{Name: words.Draw(t, "tool"), Description: words.Draw(t, "description"), InputSchema: schema}
	})
	messages := rapid.Custom(func(t *rapid.T) llm.Message {
		return llm.Message{Role: rapid.SampledFrom([]llm.Role{llm.User, llm.Assistant, llm.Notice}).Draw(t, "role"), Parts: rapid.SliceOfN(drawPart(), 0, 3).Draw(t, "parts")}
	})
	return rapid.Custom(func(t *rapid.T) *llm.Request {
		return &llm.Request{Instructions: words.Draw(t, "instructions"), Tools: rapid.SliceOfN(tools, 0, 2).Draw(t, "tools"), Messages: rapid.SliceOfN(messages, 0, 4).Draw(t, "messages"),
			MaxTokens: rapid.IntRange(0, 2).Draw(t, "max"), Thinking: rapid.IntRange(0, 2).Draw(t, "thinking")}
	}).Draw(t, name)
}

func drawPart() *rapid.Generator[llm.Part] {
	words := rapid.String()
	inner := rapid.Custom(func(t *rapid.T) llm.Part {
		if rapid.Bool().Draw(t, "picture") {
			return llm.Image{MIMEType: words.Draw(t, "type"), Data: rapid.SliceOfN(rapid.Byte(), 1, 8).Draw(t, "data")}
		}
		return llm.Text(words.Draw(t, "text"))
	})
	return rapid.Custom(func(t *rapid.T) llm.Part {
		switch rapid.IntRange(0, 3).Draw(t, "part") {
		case 0:
			return llm.Call{ID: words.Draw(t, "id"), Name: words.Draw(t, "name"), Arguments: words.Draw(t, "arguments")}
		case 1:
			return llm.Result{Call: words.Draw(t, "call"), Parts: rapid.SliceOfN(inner, 0, 2).Draw(t, "parts"), Error: rapid.Bool().Draw(t, "error")}
		case 2:
			return llm.Thinking{Vendor: words.Draw(t, "vendor"), Text: words.Draw(t, "text"), Signature: words.Draw(t, "signature"), Redacted: words.Draw(t, "redacted")}
		}
		return inner.Draw(t, "inner")
	})
}

func drawAnswer(t *rapid.T) *told {
	words := rapid.String()
	events := rapid.Custom(func(t *rapid.T) llm.Event {
		switch rapid.IntRange(0, 2).Draw(t, "event") {
		case 0:
			return llm.TextDelta(words.Draw(t, "text"))
		case 1:
			return llm.ThinkingDelta(words.Draw(t, "thought"))
		}
		return llm.CallDelta{Index: rapid.IntRange(0, 3).Draw(t, "index"), ID: words.Draw(t, "id"), Name: words.Draw(t, "name"), Arguments: words.Draw(t, "arguments")}
	})
	n := rapid.IntRange(0, 9)
	return &told{name: "some:model", events: rapid.SliceOfN(events, 0, 4).Draw(t, "events"), answer: llm.Answer{
		Message: llm.Message{Role: llm.Assistant, Parts: rapid.SliceOfN(drawPart(), 0, 3).Draw(t, "answer")},
		Stop:    rapid.SampledFrom([]llm.Stop{llm.StopEnd, llm.StopTools, llm.StopLength}).Draw(t, "stop"),
		Usage:   llm.Usage{Input: n.Draw(t, "input"), Output: n.Draw(t, "output")}, Model: words.Draw(t, "model"),
	}}
}

// A file may hold anything: it is an error, or a model that answers.
func FuzzOpen(f *testing.F) {
	dir := f.TempDir()
	m := says("Sunny.")
	m.events = slices.Insert(m.events, 0, llm.Event(llm.CallDelta{ID: "1", Name: "weather"}))
	if _, err := stream(f.Context(), record(f, m, dir, nil), question("Rome?", "It is sunny.", "Oslo?")); err != nil {
		f.Fatal(err)
	}
	data, err := os.ReadFile(files(f, dir)[0])
	if err != nil {
		f.Fatal(err)
	}
	name := filepath.Base(files(f, dir)[0])
	f.Add(data)
	f.Add([]byte(`{"model":"a:b","request":{},"failed":{"refused":{"code":429}}}`))
	f.Add([]byte(`{"model":"a:b","request":{},"answer":{"message":{"role":""}},"failed":{"cut":"x"}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
			t.Fatal(err)
		}
		m, err := replay.Open(dir)
		if err != nil {
			return
		}
		events, err := stream(t.Context(), m, question("Rome?", "It is sunny.", "Oslo?"))
		if len(events) == 0 && err == nil {
			t.Error("there is neither an event nor an error")
		}
		if err == nil && !isDone(events[len(events)-1]) {
			t.Errorf("the last event is %v", events[len(events)-1])
		}
	})
}

func isDone(e llm.Event) bool { _, ok := e.(llm.Done); return ok }
