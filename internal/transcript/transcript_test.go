package transcript_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/transcript"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// A transcript escapes untrusted names, fences results and removes terminal
// controls.
func TestMarkdown(t *testing.T) {
	for _, tt := range []struct {
		what string
		e    session.Event
		want string
	}{
		{"what was said", session.Event{Time: time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC), Message: &session.Message{Role: llm.User, Text: "hi\x1b[2J"}},
			"\n## You, 2026-01-02 03:04\n\nhi[2J\n"},
		{"what was answered and called", session.Event{Message: &session.Message{Role: llm.Assistant, Model: "demo:rules", Text: "Look.", Calls: []llm.Call{{Name: "a*b", Arguments: `{"x":1}`}}}},
			"\n## demo:rules\n\nLook.\n\nCalled a\\*b:\n\n```\n{\"x\":1}\n```\n"},
		{"what came of it", session.Event{Result: &session.CallResult{Text: "````\nout of it\n"}}, "\nResult:\n\n`````\n````\nout of it\n`````\n"},
		{"what failed", session.Event{Result: &session.CallResult{Text: "no", Error: true}}, "\nError:\n\n```\nno\n```\n"},
		{"for programs alone", session.Event{}, ""},
	} {
		if got := transcript.Markdown(&tt.e); got != tt.want {
			t.Errorf("%s: %q, want %q", tt.what, got, tt.want)
		}
	}
	if got := transcript.Markdown(&session.Event{Result: &session.CallResult{Text: strings.Repeat("a", 4000)}}); strings.Contains(got, "in all") {
		t.Error("a result of exactly 4,000 bytes is shortened")
	}
	long := transcript.Markdown(&session.Event{Result: &session.CallResult{Text: strings.Repeat("é", 5000)}})
	if !strings.Contains(long, "… (10000 bytes in all)") || len(long) > 4200 {
		t.Errorf("a long result has %d bytes: %.60q", len(long), long)
	}
}
