package fold_test

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func user(text string) session.Event {
	return session.Event{Message: &session.Message{Role: llm.User, Text: text}}
}

// A state saved between the results of two calls continues with the same images and
// errors.
func TestSavedBetweenResults(t *testing.T) {
	events := []session.Event{
		user("draw two"),
		{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: "draw"}, {ID: "2", Name: "draw"}}}},
		{Result: &session.CallResult{Call: "1", Text: "one", Images: []llm.Image{{MIMEType: "image/png", Data: []byte{1, 2}}}, Error: true}},
		{Notice: &session.Notice{Text: "later"}},
		{Result: &session.CallResult{Call: "2", Text: "two"}},
	}
	whole := &fold.State{}
	saved := &fold.State{}
	for i, e := range events {
		e.Seq = int64(i + 1)
		whole.Apply(e)
		saved.Apply(e)
		text, err := json.Marshal(saved)
		if err != nil {
			t.Fatal(err)
		}
		saved = &fold.State{}
		if err := json.Unmarshal(text, saved); err != nil {
			t.Fatalf("%v: %s", err, text)
		}
	}
	_, want := whole.Request()
	if _, got := saved.Request(); !reflect.DeepEqual(got, want) || len(got) != 4 {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
	if saved.Size() != whole.Size() || saved.Tokens() != whole.Tokens() {
		t.Errorf("size %d and %d tokens, want %d and %d", saved.Size(), saved.Tokens(), whole.Size(), whole.Tokens())
	}
}

// A saved state that this program cannot read is refused, wherever the fault is.
func TestDamagedStates(t *testing.T) {
	var s fold.State
	s.Apply(user("hello"))
	call := session.Event{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: "a"}, {ID: "2", Name: "a"}}}}
	s.Apply(call)
	s.Apply(session.Event{Result: &session.CallResult{Call: "1", Text: "result one"}})
	s.Apply(session.Event{Notice: &session.Notice{Text: "a notice"}})
	text, err := json.Marshal(&s)
	if err != nil {
		t.Fatal(err)
	}
	for _, part := range []string{`"hello"`, `"a notice"`, `"result one"`} {
		damaged := bytes.Replace(text, []byte(`[{"text":`+part+`}]`), []byte("[{}]"), 1)
		if bytes.Equal(damaged, text) {
			t.Fatalf("no part %s in %s", part, text)
		}
		got := s
		if err := json.Unmarshal(damaged, &got); err == nil {
			t.Errorf("a state without the part %s was read", part)
		}
		if _, messages := got.Request(); len(messages) == 0 {
			t.Errorf("part %s: a failure changed the state", part)
		}
	}
	if err := json.Unmarshal([]byte(`{"seq":"x"}`), &s); err == nil {
		t.Error("a state with another type was read")
	}
}

// The last messages have at most 8,000 bytes; of a single longer one, its beginning.
func TestLastMessagesLimit(t *testing.T) {
	s := &fold.State{}
	for range 100 {
		s.Apply(user(strings.Repeat("a", 300)))
	}
	if got := s.LastMessages(); len(got) > 8000+100 || len(got) < 7000 || strings.Count(got, "\n") < 20 {
		t.Errorf("%d bytes in %d lines", len(got), strings.Count(got, "\n"))
	}
	s.Apply(user(strings.Repeat("é", 9000)))
	if got := s.LastMessages(); len(got) > 8000 || len(got) < 7990 || strings.ContainsRune(got, '\ufffd') || strings.Contains(got, "aa") {
		t.Errorf("a long message has %d bytes", len(got))
	}
	// A state is saved without messages that it does not return.
	var saved struct{ Last []json.RawMessage }
	if text, err := json.Marshal(s); err != nil || json.Unmarshal(text, &saved) != nil || len(saved.Last) != 1 {
		t.Errorf("the saved state has %d last messages, %v", len(saved.Last), err)
	}
	before := s.Size()
	s.Apply(session.Event{Compacted: &session.Compaction{Text: "So far.", Model: "m", Usage: &llm.Usage{Output: 3}}})
	if s.Usage()["m"].Output != 3 || s.Size() >= before || s.HasAnswer() {
		t.Errorf("after a compaction, usage %v, size %d of %d", s.Usage(), s.Size(), before)
	}
	if s.LastMessages() == "" {
		t.Error("a compaction removes the last messages")
	}
}

func TestContinuesTurn(t *testing.T) {
	for _, tt := range []struct {
		m    session.Message
		want bool
	}{
		{session.Message{}, false}, {session.Message{Stop: "end"}, false}, {session.Message{Calls: []llm.Call{{ID: "1"}}}, true},
		{session.Message{Stop: string(llm.StopPause)}, true}, {session.Message{Stop: fold.StopCut}, true},
	} {
		if got := fold.ContinuesTurn(&tt.m); got != tt.want {
			t.Errorf("%+v: %t", tt.m, got)
		}
	}
}
