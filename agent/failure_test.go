package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

var errDisk = errors.New("disk full")

// fullLog is a log whose Append fails after a number of calls.
type fullLog struct {
	session.MemoryLog
	left int
}

func (l *fullLog) Append(ctx context.Context, events ...*session.Event) error {
	if l.left--; l.left < 0 {
		return errDisk
	}
	return l.MemoryLog.Append(ctx, events...)
}

// Whichever event cannot be stored, the turn fails with the error of the log.
func TestFailingLog(t *testing.T) {
	count := func(id string) llm.Call { return llm.Call{ID: id, Name: "count"} }
	turn := func(tk *talk) error { return tk.RunTurn(context.Background(), "Go.", tk.tell) }
	for name, tt := range map[string]struct {
		answers []*llm.Answer
		before  func(*talk) error // with a log that works
		do      func(*talk) error
		appends int // at least
	}{
		"a turn": {[]*llm.Answer{calls(load("1", "tides")), calls(count("2"), count("3")), calls(llm.Call{ID: "4", Name: "unload_skill", Arguments: `{"name":"tides"}`}), says("done")}, nil, turn, 9},
		"cut off": {[]*llm.Answer{nil}, nil, func(tk *talk) error {
			turn(tk)
			return tk.session.Append(context.Background(), session.Event{Notice: &session.Notice{Text: "x"}})
		}, 3},
		"a command":      {[]*llm.Answer{says("done")}, nil, func(tk *talk) error { return tk.InvokeSkill(context.Background(), "tides", "now", tk.tell) }, 5},
		"a summary":      {[]*llm.Answer{says("one"), says("short")}, turn, func(tk *talk) error { return tk.Compact(context.Background(), tk.tell) }, 1},
		"a full context": {[]*llm.Answer{says("one"), says("short"), says("two")}, turn, turn, 3},
	} {
		t.Run(name, func(t *testing.T) {
			for n := 0; ; n++ {
				log := &fullLog{left: 1 << 30}
				o := &agent.Options{}
				if name == "a full context" {
					o.ContextWindow = 10
				}
				tk := newTalkWith(t, log, o, slices.Clone(tt.answers)...)
				if tt.before != nil {
					if err := tt.before(tk); err != nil {
						t.Fatal(err)
					}
				}
				log.left = n
				err := tt.do(tk)
				if err == nil {
					if n < tt.appends {
						t.Errorf("succeeded with %d appends, want at least %d", n, tt.appends)
					}
					break
				}
				if !errors.Is(err, errDisk) {
					t.Fatalf("after %d appends: %v", n, err)
				}
				if n > 50 {
					t.Fatal("never succeeds")
				}
			}
		})
	}
}

// A turn that fails while it makes the calls of an interrupted one reports it.
func TestResumeWithFailingLog(t *testing.T) {
	for n := 0; n < 4; n++ {
		log := &fullLog{left: 1 << 30}
		before := newTalk(t, log)
		for _, e := range []session.Event{
			{Message: &session.Message{Role: llm.User, Text: "Go."}},
			{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: "count"}}}},
		} {
			if err := before.session.Append(t.Context(), e); err != nil {
				t.Fatal(err)
			}
		}
		tk := newTalk(t, log, says("done"))
		log.left = n
		if err := tk.Resume(t.Context(), tk.tell); (err == nil) != (n == 3) || err != nil && !errors.Is(err, errDisk) {
			t.Errorf("after %d appends: %v", n, err)
		}
	}
}

// stream is a model with the given events and error.
type stream struct {
	script
	events []llm.Event
	err    error
}

func (m *stream) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m.requests = append(m.requests, r)
		for _, e := range m.events {
			if !yield(e, nil) {
				return
			}
		}
		if m.err != nil {
			yield(nil, m.err)
		}
	}
}

// Thinking is shown, and sent back with the answer only if the answer is complete.
func TestThinking(t *testing.T) {
	thought := llm.Thinking{Vendor: "script", Text: "hmm", Signature: "sig", Redacted: "red"}
	for stop, sent := range map[llm.Stop]bool{llm.StopEnd: true, llm.StopLength: false, llm.StopRefuse: false} {
		m := &stream{events: []llm.Event{llm.ThinkingDelta("hmm"), llm.TextDelta("yes"), llm.Done{Answer: llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{thought, llm.Text("yes")}}, Stop: stop}}}}
		tk := newTalk(t, nil)
		tk.SetModel(m)
		var shown string
		for range 2 {
			if err := tk.RunTurn(t.Context(), "Go.", func(e agent.Event) {
				if e.Type == agent.Thinking {
					shown += e.Text
				}
			}); err != nil {
				t.Fatal(err)
			}
		}
		if shown != "hmmhmm" {
			t.Errorf("%s: showed %q", stop, shown)
		}
		if got := slices.Contains(m.requests[1].Messages[1].Parts, llm.Part(thought)); got != sent {
			t.Errorf("%s: thinking was sent back: %t", stop, got)
		}
	}
}

// A pause of the model continues the turn.
func TestPause(t *testing.T) {
	pause := says("one moment")
	pause.Stop = llm.StopPause
	tk := newTalk(t, nil, pause, says("done"))
	tk.turn(t, "Go.")
	if len(tk.model.requests) != 2 {
		t.Errorf("%d requests, want 2", len(tk.model.requests))
	}
}

// A refusal that may mean that the conversation is too long makes the last messages
// the summary. Other failures are errors.
func TestSummaryIsRefused(t *testing.T) {
	for code, compacts := range map[int]bool{399: false, 400: true, 401: false, 403: false, 404: true, 413: true, 429: false, 499: true, 500: false} {
		tk := newTalk(t, nil, says("high tide at noon"))
		tk.turn(t, "When?")
		tk.SetModel(&stream{err: &llm.StatusError{Vendor: "script", Code: code}})
		var text string
		err := tk.Compact(t.Context(), func(e agent.Event) {
			if e.Type == agent.Compacted {
				text = e.Text
			}
		})
		if (err == nil) != compacts || compacts != strings.Contains(text, "high tide at noon") {
			t.Errorf("status %d: %v, summary %q", code, err, text)
		}
	}
}

// The model of a skill is used only if the skill names another than its caller's.
func TestInheritedModel(t *testing.T) {
	tk := newTalkWith(t, nil, &agent.Options{SkillModel: func(name string) (llm.Model, error) { return nil, fmt.Errorf("asked for %q", name) }}, says("done"))
	for _, m := range []string{"", "inherit"} {
		if err := tk.session.Append(t.Context(), session.Event{Loaded: &session.SkillLoad{Skill: session.ID{Name: "x" + m}, Model: m}}); err != nil {
			t.Fatal(err)
		}
	}
	tk.turn(t, "Go.")
	if slices.Contains(tk.told, string(agent.Notice)) {
		t.Errorf("told %v", tk.told)
	}
}

// The hook of loads can ask first, answer otherwise, or end the turn.
func TestLoadSkillHook(t *testing.T) {
	fails := errors.New("no permissions")
	for name, tt := range map[string]struct {
		hook  func(load func() (*session.LoadResult, error)) (*session.LoadResult, error)
		text  string
		fails error
	}{
		"loads": {func(load func() (*session.LoadResult, error)) (*session.LoadResult, error) { return load() }, "Add one hour", nil},
		"answers": {func(func() (*session.LoadResult, error)) (*session.LoadResult, error) {
			return &session.LoadResult{State: session.StateFailed, Text: "not today"}, nil
		}, "not today", nil},
		"again": {func(func() (*session.LoadResult, error)) (*session.LoadResult, error) {
			return &session.LoadResult{State: session.StateAlreadyLoaded, Text: "loaded", Problems: []string{"a", "b"}}, nil
		}, "loaded\nProblems: a; b", nil},
		"fails": {func(func() (*session.LoadResult, error)) (*session.LoadResult, error) { return nil, fails }, "", fails},
	} {
		tk := newTalkWith(t, nil, &agent.Options{LoadSkill: func(_ context.Context, skill string, load func() (*session.LoadResult, error)) (*session.LoadResult, error) {
			if skill != "tides" {
				t.Errorf("%s: asked for %q", name, skill)
			}
			return tt.hook(load)
		}}, calls(load("1", "tides")), says("done"))
		if err := tk.RunTurn(t.Context(), "Go.", tk.tell); !errors.Is(err, tt.fails) {
			t.Errorf("%s: %v", name, err)
		} else if err != nil {
			continue
		}
		r := tk.model.requests[1].Messages[2].Parts[0].(llm.Result)
		if got := string(r.Parts[0].(llm.Text)); !strings.Contains(got, tt.text) || r.Error != (name == "answers") {
			t.Errorf("%s: the model got %q, error %t", name, got, r.Error)
		}
	}
}

func TestArgumentsOfSkillTools(t *testing.T) {
	for args, want := range map[string]string{
		`[1]`: "no JSON object", `{}`: "name of a skill", ``: "name of a skill", `{"skill_name":"tides"}`: "Add one hour", `{"name":"tides","skill_name":"ships"}`: "Add one hour",
	} {
		tk := newTalk(t, nil, calls(llm.Call{ID: "1", Name: "load_skill", Arguments: args}), says("done"))
		tk.turn(t, "Go.")
		if r := tk.model.requests[1].Messages[2].Parts[0].(llm.Result); !strings.Contains(string(r.Parts[0].(llm.Text)), want) || r.Error != !strings.Contains(want, "hour") {
			t.Errorf("%s: the model got %v", args, r)
		}
	}
}

// The approval requests of an abandoned call are cancelled when a turn starts, in a
// queue of memory or of files.
func TestAbandonedRequestsAreCancelled(t *testing.T) {
	for name, q := range map[string]*agent.ApprovalQueue{"memory": agent.NewApprovalQueue(""), "files": agent.NewApprovalQueue(t.TempDir())} {
		tk := newTalkWith(t, nil, &agent.Options{Approvals: q}, says("done"))
		kinds := []approval.Kind{approval.KindApproval, approval.KindElicitation, approval.KindForm}
		for _, k := range kinds {
			if _, err := q.Submit(t.Context(), approval.Request{Kind: k, Session: tk.session.ID(), Message: "May I?", Principal: policy.LocalUser()}); err != nil {
				t.Fatal(err)
			}
		}
		tk.turn(t, "Go.")
		left, err := q.Pending(t.Context(), tk.session.ID(), policy.Principal{})
		if err != nil || len(left) != 1 || left[0].Kind != approval.KindForm {
			t.Errorf("%s: left %+v, %v", name, left, err)
		}
		if slices.Contains(tk.told, string(agent.Notice)) {
			t.Errorf("%s: told %v", name, tk.told)
		}
	}
	q := approval.NewQueue(crashing{&approval.MemoryStore{}})
	tk := newTalkWith(t, nil, &agent.Options{Approvals: q}, says("done"))
	if _, err := q.Submit(t.Context(), approval.Request{Kind: approval.KindApproval, Session: tk.session.ID(), Message: "May I?", Principal: policy.LocalUser()}); err != nil {
		t.Fatal(err)
	}
	tk.turn(t, "Go.")
	if !slices.Contains(tk.told, string(agent.Notice)) {
		t.Errorf("told %v, want a notice", tk.told)
	}
}

// ServerTools returns the tools of one server under their own names.
func TestServerToolsByName(t *testing.T) {
	l := newLibrary(t, nil, &approval.MemoryStore{}, policy.NewMemoryStore(), func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Accepted} })
	o := &agent.SkillToolOptions{Tools: l.set, Principal: ann, Approvals: l.desk}
	all, err := agent.ServerTools(t.Context(), l.rt, l.session, "shelf", o)
	if err != nil || len(all) != 3 {
		t.Fatal(all, err)
	}
	flags := map[string][2]bool{"put": {}, "burn": {}, "look": {true, true}}
	for _, tool := range all {
		if got := [2]bool{tool.Repeatable, tool.ReadOnly}; got != flags[tool.Name] || !tool.ReportsStart || !strings.Contains(string(tool.InputSchema), "book") {
			t.Errorf("%s: repeatable and read-only %v, schema %s", tool.Name, got, tool.InputSchema)
		}
	}
	tk := newTalkWith(t, nil, &agent.Options{Tools: all}, calls(llm.Call{ID: "1", Name: "put", Arguments: `{"book":"atlas"}`}), says("done"))
	tk.turn(t, "Go.")
	if !slices.Equal(l.shelf.called, []string{"put atlas"}) {
		t.Errorf("called %q", l.shelf.called)
	}
	for server, want := range map[string]string{"none": "none", "broken": "broken"} {
		if all, err := agent.ServerTools(t.Context(), l.rt, l.session, server, o); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, %v", server, all, err)
		}
	}
}

// Arguments of call_tool may be an object in a string, as some models write them.
func TestArgumentsOfCallTool(t *testing.T) {
	for args, want := range map[string]string{
		`{"name":"shelf__put","arguments":"{\"book\":\"atlas\"}"}`: "ok atlas", `{"name":"shelf__put","arguments":"no object"}`: "", `{"arguments":{}}`: "Give the name", `[]`: "Give the name",
	} {
		l := newLibrary(t, nil, &approval.MemoryStore{}, policy.NewMemoryStore(), func(approval.Request) *approval.Answer { return &approval.Answer{Outcome: approval.Accepted} })
		l.model.answers = []*llm.Answer{calls(llm.Call{ID: "1", Name: "call_tool", Arguments: args}), says("done")}
		l.turn(t, "Go.")
		if r := l.model.requests[1].Messages[2].Parts[0].(llm.Result); !strings.Contains(string(r.Parts[0].(llm.Text)), want) || r.Error != (want != "ok atlas") {
			t.Errorf("%s: the model got %v", args, r)
		}
	}
}

// A resumed agent with a state sends the same request as one that reads all events.
func TestStateIsCloned(t *testing.T) {
	now := []*catalog.Entry{{Name: "a"}}
	log := &session.MemoryLog{}
	tk := newTalkWith(t, log, &agent.Options{Skills: func() []*catalog.Entry { return now }}, says("one"))
	tk.turn(t, "first")
	state := agent.FoldedState(tk.Agent)
	before, _ := json.Marshal(state)
	after := newTalkWith(t, log, &agent.Options{State: state}, says("two"))
	after.turn(t, "second")
	if m := after.model.requests[0].Messages; len(m) != 3 {
		t.Errorf("the model got %v", m)
	}
	if now, _ := json.Marshal(state); string(now) != string(before) {
		t.Error("the caller's state has changed")
	}
}
