package agent_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/llm"
)

// If the conversation is compacted in the middle of a turn, the user's last
// message is repeated literally, whatever the summary says.
func TestCompactionKeepsPendingMessage(t *testing.T) {
	for _, tt := range []struct {
		name    string
		answers []*llm.Answer // up to the compaction
	}{
		{"before the first answer", []*llm.Answer{full(says("fine"))}},
		{"between calls", []*llm.Answer{says("fine"), full(calls(llm.Call{ID: "1", Name: "count"}))}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tk := newTalkWith(t, nil, &agent.Options{ContextWindow: 1000}, append(tt.answers, says("Nothing of note."), says("done"))...)
			tk.turn(t, "Hello.")
			tk.turn(t, "Count the ships of Dover.")
			got := jsonText(tk.model.requests[len(tk.model.requests)-1])
			if len(got) != 1 || !strings.HasPrefix(got[0], "The conversation so far, in short:\n\nNothing of note.") || !strings.Contains(got[0], "Count the ships of Dover.") || strings.Contains(got[0], "Hello.") {
				t.Errorf("the model is sent %q", got)
			}
			if err := tk.Compact(t.Context(), nil); err == nil { // the script has ended
				t.Fatal("it was compacted")
			}
			tk.model.answers = []*llm.Answer{says("They counted.")}
			if err := tk.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			tk.model.answers = []*llm.Answer{says("fine")}
			tk.turn(t, "Thanks.")
			if got := jsonText(tk.model.requests[len(tk.model.requests)-1]); holds(got, "Count the ships of Dover.") {
				t.Errorf("what is done is reported again: %q", got)
			}
		})
	}
}

// full returns an answer that fills the context window.
func full(a *llm.Answer) *llm.Answer {
	a.Usage = llm.Usage{Input: 990, Output: 10}
	return a
}

// A turn that ends right after a compaction continues.
func TestResumeAfterCompaction(t *testing.T) {
	tk := newTalkWith(t, nil, &agent.Options{ContextWindow: 1000}, full(says("fine")), says("Nothing of note."))
	tk.turn(t, "Hello.")
	if err := tk.RunTurn(t.Context(), "Count.", tk.tell); err == nil {
		t.Fatal("the script was not over")
	}
	tk.model.answers = []*llm.Answer{calls(llm.Call{ID: "1", Name: "count"}), says("one")}
	if err := tk.Resume(t.Context(), tk.tell); err != nil || len(tk.counted) != 1 {
		t.Fatalf("%v, counted %d", err, len(tk.counted))
	}
	tk.prefixesBut(t, 2)
	asked := len(tk.model.requests)
	if err := tk.Resume(t.Context(), tk.tell); err != nil || len(tk.model.requests) != asked {
		t.Errorf("%d requests, %v", len(tk.model.requests)-asked, err)
	}
}
