package chat

import (
	"bytes"
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/console"
	"github.com/loadout-dev/loadout/internal/presence"
	"github.com/loadout-dev/loadout/internal/setup"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/policy"
)

func TestOnlyOfferedAnswersAreAccepted(t *testing.T) {
	decision := `{"properties":{"decision":{"type":"string","enum":["once","always","no"]}}}`
	allow := `{"properties":{"how":{"type":"string","enum":["allow-always","allow","No"]}},"required":["how"]}`
	for _, tt := range []struct {
		name, schema, typed string
		want                approval.Outcome
		content             string
	}{
		{"yes", "", "yes\n", approval.Accepted, ""},
		{"y", "", "Y\n", approval.Accepted, ""},
		{"no", "", "no\n", approval.Declined, ""},
		{"an empty line", "", "\n", approval.Cancelled, ""},
		{"nothing at all", "", "", approval.Cancelled, ""},
		{"another word, then yes", "", "maybe\nyes\n", approval.Accepted, ""},
		{"a form without fields", `{"properties":{}}`, "", approval.Cancelled, ""},
		{"a form that cannot be read", `{"properties":[]}`, "yes\n", approval.Cancelled, ""},
		{"once", decision, "once\n", approval.Accepted, `{"decision":"once"}`},
		{"the decision no", decision, "n\n", approval.Declined, ""},
		{"no decision", decision, "\n", approval.Cancelled, ""},
		{"the exact word, not the one that it begins", allow, "allow\n", approval.Accepted, `{"how":"allow"}`},
		{"a beginning of two", allow, "all\nno\n", approval.Accepted, `{"how":"No"}`},
		{"a field that may be left out", `{"properties":{"a":{"type":"integer"},"b":{"type":"string"}},"required":["a"]}`, "x\n4\n\n", approval.Accepted, `{"a":4}`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var shown bytes.Buffer
			a := &Host{Setup: setup.Setup{Console: console.Console{Stdout: &shown, Stderr: &shown, Getenv: func(string) string { return "" }}}}
			input := terminal.NewLineReader(strings.NewReader(tt.typed))
			defer input.Close()
			got := a.promptUser(t.Context(), approval.Request{Message: "Do it?\x1b[2J", Schema: json.RawMessage(tt.schema)}, input)
			if got.Outcome != tt.want || string(got.Content) != tt.content {
				t.Errorf("%s %s, want %s %s", got.Outcome, got.Content, tt.want, tt.content)
			}
			if strings.Contains(shown.String(), "\x1b") {
				t.Errorf("it shows %q", shown.String())
			}
		})
	}
}

func TestResolvedPromptReadsNoLine(t *testing.T) {
	var shown bytes.Buffer
	a := &Host{Setup: setup.Setup{Console: console.Console{Stdout: &shown, Stderr: &shown, Getenv: func(string) string { return "" }}}}
	lines := make(chan string)
	input := terminal.NewLineReader(readerOf(lines))
	defer input.Close()
	desk := approval.NewQueue(&approval.MemoryStore{})
	stop := a.answerPrompts(t.Context(), desk, input)
	id, err := desk.Submit(t.Context(), approval.Request{Kind: approval.KindApproval, Session: "s", Principal: policy.LocalUser(), Message: "Do it?"})
	if err != nil {
		t.Fatal(err)
	}
	if err := desk.Cancel(t.Context(), id); err != nil {
		t.Fatal(err)
	}
	stop() // waits for the end of the output
	go func() { lines <- "the next prompt\n"; close(lines) }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if line, err := input.ReadLine(ctx); err != nil || line != "the next prompt" {
		t.Errorf("the next line is %q, %v", line, err)
	}
}

type readerOf chan string

func (r readerOf) Read(b []byte) (int, error) {
	line, ok := <-r
	if !ok {
		return 0, context.Canceled
	}
	return copy(b, line), nil
}

// The prompt shows the effect of a call, and the approval has the chosen scope.
func TestApprovalLineByLine(t *testing.T) {
	call := json.RawMessage(`{"tool":"workspace__write_file","server":"workspace","reason":"it is HIGH","arguments":{"path":"a.txt","content":"one\ntwo\u001b[2J\n"}}`)
	for _, tt := range []struct {
		typed, terminal string
		want            approval.Outcome
		scope           policy.Scope
	}{
		{"yes\n", "/dev/pts/1", approval.Accepted, ""},
		{"s\n", "/dev/pts/1", approval.Accepted, policy.ForSession},
		{"always\n", "/dev/pts/1", approval.Accepted, policy.Always},
		{"always\n", "", approval.Accepted, policy.ForSession}, // typed by a program
		{"n\n", "/dev/pts/1", approval.Declined, ""},
		{"perhaps\nno\n", "/dev/pts/1", approval.Declined, ""},
		{"\n", "/dev/pts/1", approval.Cancelled, ""},
		{"", "/dev/pts/1", approval.Cancelled, ""},
	} {
		t.Run(tt.typed+tt.terminal, func(t *testing.T) {
			var shown bytes.Buffer
			a := &Host{Setup: setup.Setup{Console: console.Console{Stdout: &shown, Stderr: &shown, Getenv: func(string) string { return "" }},
				DetectCaller: func() presence.Caller { return presence.Caller{Terminal: tt.terminal} }}}
			input := terminal.NewLineReader(strings.NewReader(tt.typed))
			defer input.Close()
			got := a.promptUser(t.Context(), approval.Request{Kind: approval.KindApproval, Message: "?", Payload: call}, input)
			if got.Outcome != tt.want || got.Scope != tt.scope {
				t.Errorf("%s %q, want %s %q", got.Outcome, got.Scope, tt.want, tt.scope)
			}
			if text := shown.String(); !strings.Contains(text, "path: a.txt\n+ one\n+ two[2J\n") || !strings.Contains(text, "Reason: it is HIGH") {
				t.Errorf("it shows %q", text)
			}
		})
	}
}
