package agent_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/fstest"

	"go.uber.org/goleak"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// script is a model that returns fixed answers in order and records its
// requests. A nil answer is a stream that breaks off in the middle of a word.
type script struct {
	mu       sync.Mutex
	answers  []*llm.Answer
	requests []*llm.Request
}

func (*script) Name() string { return "script:1" }

func (m *script) Stream(_ context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		m.mu.Lock()
		m.requests = append(m.requests, r)
		if len(m.answers) == 0 {
			m.mu.Unlock()
			yield(nil, errors.New("the script is over"))
			return
		}
		a := m.answers[0]
		m.answers = m.answers[1:]
		m.mu.Unlock()
		if a == nil {
			half := llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text("hal"), llm.Call{ID: "x", Name: "count"}}}}
			_ = yield(llm.TextDelta("hal"), nil) && yield(nil, &llm.CutError{Answer: half})
			return
		}
		_ = yield(llm.TextDelta(a.Message.Text()), nil) && yield(llm.Done{Answer: *a}, nil)
	}
}

func says(text string) *llm.Answer {
	return &llm.Answer{Message: llm.Message{Role: llm.Assistant, Parts: []llm.Part{llm.Text(text)}}, Stop: llm.StopEnd, Usage: llm.Usage{Input: 10, Output: 2}}
}

func calls(all ...llm.Call) *llm.Answer {
	a := &llm.Answer{Message: llm.Message{Role: llm.Assistant}, Stop: llm.StopTools}
	for _, c := range all {
		a.Message.Parts = append(a.Message.Parts, c)
	}
	return a
}

func load(id, name string) llm.Call {
	return llm.Call{ID: id, Name: "load_skill", Arguments: fmt.Sprintf(`{"name":%q}`, name)}
}

var tides = fstest.MapFS{
	"secret/SKILL.md": {Data: []byte("---\nname: secret\ndescription: For people.\ndisable-model-invocation: true\nargument-hint: what\n---\nWhisper $ARGUMENTS.\n")},
	"tides/SKILL.md":  {Data: []byte("---\nname: tides\ndescription: Reads tide tables.\n---\nAdd one hour in summer.\n")},
	"ships/SKILL.md":  {Data: []byte("---\nname: ships\ndescription: Knows ships.\n---\nShips are long.\n")},
}

// talk is a conversation with a scripted model.
type talk struct {
	*agent.Agent
	model   *script
	session *loadout.Session
	told    []string
	counted []string // arguments of the calls of count
}

func newTalk(t *testing.T, log session.Log, answers ...*llm.Answer) *talk {
	t.Helper()
	return newTalkWith(t, log, &agent.Options{}, answers...)
}

// newTalkWith returns a talk with options. It fills in the instructions, tools
// and steps that are not set.
func newTalkWith(t *testing.T, log session.Log, o *agent.Options, answers ...*llm.Answer) *talk {
	t.Helper()
	rt, err := loadout.New(t.Context(), &loadout.Options{Sources: []catalog.Source{catalog.NewFS("mine", catalog.User, tides)}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	s, err := rt.NewSession(t.Context(), &session.Options{Log: log, ID: "talk"})
	if err != nil {
		t.Fatal(err)
	}
	tk := &talk{model: &script{answers: answers}, session: s}
	var mu sync.Mutex
	count := agent.Tool{Tool: llm.Tool{Name: "count", InputSchema: json.RawMessage(`{"type":"object"}`)},
		Call: func(_ context.Context, args json.RawMessage) (*agent.Outcome, error) {
			mu.Lock()
			defer mu.Unlock()
			tk.counted = append(tk.counted, string(args))
			return &agent.Outcome{Text: fmt.Sprint(len(tk.counted))}, nil
		}}
	o.Instructions, o.Tools, o.MaxSteps = cmp.Or(o.Instructions, "Help."), append(o.Tools, count), cmp.Or(o.MaxSteps, 8)
	tk.Agent = agent.New(tk.model, s, o)
	return tk
}

func (tk *talk) tell(e agent.Event) {
	tk.told = append(tk.told, strings.TrimSpace(string(e.Type)+" "+e.Skill))
}

func (tk *talk) turn(t *testing.T, text string) {
	t.Helper()
	if err := tk.RunTurn(t.Context(), text, tk.tell); err != nil {
		t.Fatal(err)
	}
}

// prefixes fails the test if a request does not begin with the previous one, or
// has other instructions or tools.
func (tk *talk) prefixes(t *testing.T) {
	t.Helper()
	tk.prefixesBut(t, -1)
}

// prefixesBut is like prefixes, except for the request after a compaction.
func (tk *talk) prefixesBut(t *testing.T, compacted int) {
	t.Helper()
	for i, r := range tk.model.requests[1:] {
		if i+1 == compacted {
			continue
		}
		before := tk.model.requests[i]
		if r.Instructions != before.Instructions || !reflect.DeepEqual(r.Tools, before.Tools) {
			t.Errorf("request %d has other instructions or tools than the one before", i+2)
		}
		if len(r.Messages) < len(before.Messages) || !reflect.DeepEqual(r.Messages[:len(before.Messages)], before.Messages) {
			t.Errorf("request %d does not begin with the one before:\n%v\n%v", i+2, before.Messages, r.Messages)
		}
	}
}

// B: the tool that loads a skill returns its instructions to the model, and
// events are emitted in order.
func TestTurnLoadsASkillAndUsesIt(t *testing.T) {
	tk := newTalk(t, nil, calls(load("1", "tides")), calls(llm.Call{ID: "2", Name: "count", Arguments: `{"n":1}`}), says("High water is at 12:10."))
	tk.turn(t, "When is high water?")
	tk.prefixes(t)
	last := tk.model.requests[2].Messages
	if got := last[2].Parts[0].(llm.Result); got.Call != "1" || !strings.Contains(string(got.Parts[0].(llm.Text)), "Add one hour in summer.") {
		t.Errorf("the model got %+v", got)
	}
	want := []string{"text", "usage", "tool_call", "skill_loaded tides", "tool_result", "text", "usage", "tool_call", "tool_result", "text", "usage", "done"}
	if !slices.Equal(tk.told, want) {
		t.Errorf("got\n%v\nwant\n%v", tk.told, want)
	}
	if !slices.Equal(tk.counted, []string{`{"n":1}`}) {
		t.Errorf("count was called with %v", tk.counted)
	}
}

// Calls of one answer run concurrently, and their results follow the order of
// the calls. Two loads of one skill do the work once.
func TestParallelCalls(t *testing.T) {
	tk := newTalk(t, nil, calls(load("a", "tides"), load("b", "tides"), load("c", "ships"), llm.Call{ID: "d", Name: "count"}), says("done"))
	tk.turn(t, "Load them.")
	tk.prefixes(t)
	var got []string
	loaded := 0
	for _, p := range tk.model.requests[1].Messages[2].Parts {
		r := p.(llm.Result)
		got = append(got, r.Call)
		if strings.Contains(string(r.Parts[0].(llm.Text)), "Add one hour") {
			loaded++
		}
	}
	if !slices.Equal(got, []string{"a", "b", "c", "d"}) || loaded != 1 {
		t.Errorf("results %v, the instructions %d times", got, loaded)
	}
}

// The model gets the errors of calls, and the turn continues.
func TestModelSeesErrorsOfBadCalls(t *testing.T) {
	for _, tt := range []struct {
		name string
		call llm.Call
		want string
	}{
		{"no such tool", llm.Call{ID: "1", Name: "fly"}, `There is no tool "fly"`},
		{"no JSON", llm.Call{ID: "1", Name: "count", Arguments: `{"n":`}, "no JSON. The call was not made"},
		{"no such skill", load("1", "tidez"), "did you mean tides?"},
		{"no name", llm.Call{ID: "1", Name: "load_skill"}, "Give the name of a skill"},
		{"unloading what is not loaded", llm.Call{ID: "1", Name: "unload_skill", Arguments: `{"name":"tides"}`}, "not loaded"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tk := newTalk(t, nil, calls(tt.call), says("sorry"))
			tk.turn(t, "Do it.")
			r := tk.model.requests[1].Messages[2].Parts[0].(llm.Result)
			if text := string(r.Parts[0].(llm.Text)); !r.Error || !strings.Contains(text, tt.want) {
				t.Errorf("got %q, error %t", text, r.Error)
			}
			if len(tk.counted) > 0 {
				t.Errorf("count was called with %v", tk.counted)
			}
		})
	}
}

// A call that the token limit truncated is not made, and the model gets an
// error.
func TestTruncatedCallIsNotMade(t *testing.T) {
	cut := calls(llm.Call{ID: "1", Name: "count", Arguments: `{}`})
	cut.Stop = llm.StopLength
	tk := newTalk(t, nil, cut, says("I will be brief."))
	tk.turn(t, "Count.")
	tk.prefixes(t)
	if len(tk.counted) > 0 {
		t.Errorf("it was called with %v", tk.counted)
	}
	last := tk.model.requests[1].Messages
	if n := last[len(last)-1]; n.Role != llm.Notice || !strings.Contains(n.Text(), "was not made") {
		t.Errorf("the model got %+v", n)
	}
}

// The received part of an interrupted answer is recorded without its calls, and
// the conversation continues after it.
func TestPartialResponseIsKept(t *testing.T) {
	tk := newTalk(t, nil, nil, says("whole"))
	if err := tk.RunTurn(t.Context(), "Say it.", tk.tell); !errors.As(err, new(*llm.CutError)) {
		t.Fatal(err)
	}
	tk.turn(t, "Again.")
	tk.prefixes(t)
	var words []string
	for _, m := range tk.model.requests[1].Messages {
		words = append(words, m.Text())
	}
	if !slices.Equal(words, []string{"Say it.", "hal", "Again."}) || len(tk.counted) > 0 {
		t.Errorf("the model is sent %q", words)
	}
}

// After a crash, a call that may have run is not repeated. Calls that did not
// start or are repeatable are made, and the turn continues.
func TestResumeRepeatsNoCallWithUnknownOutcome(t *testing.T) {
	log := &session.MemoryLog{}
	before := newTalk(t, log)
	at := func(e session.Event) {
		if err := before.session.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	at(session.Event{Start: &session.Start{Instructions: "Help, as yesterday."}})
	at(session.Event{Message: &session.Message{Role: llm.User, Text: "Do it."}})
	at(session.Event{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{
		{ID: "1", Name: "count", Arguments: `{"n":1}`}, {ID: "2", Name: "count", Arguments: `{"n":2}`}, {ID: "3", Name: "load_skill", Arguments: `{"name":"tides"}`}}}})
	at(session.Event{CallStarted: &session.CallStart{Call: "1"}})
	at(session.Event{CallStarted: &session.CallStart{Call: "3"}})

	tk := newTalk(t, log, says("done"))
	if err := tk.Resume(t.Context(), tk.tell); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(tk.counted, []string{`{"n":2}`}) {
		t.Errorf("count was called with %v", tk.counted)
	}
	req := tk.model.requests[0]
	if req.Instructions != "Help, as yesterday." {
		t.Errorf("the instructions are now %q", req.Instructions)
	}
	results := req.Messages[2].Parts
	if text := string(results[0].(llm.Result).Parts[0].(llm.Text)); !strings.Contains(text, "not known whether") {
		t.Errorf("for the call that may have been made the model got %q", text)
	}
	if text := string(results[2].(llm.Result).Parts[0].(llm.Text)); !strings.Contains(text, "Add one hour") {
		t.Errorf("for the load the model got %q", text)
	}
	if err := tk.Resume(t.Context(), tk.tell); err != nil || len(tk.model.requests) != 1 {
		t.Errorf("there is nothing left to resume: %v", err)
	}
}

// A turn ends after the maximum number of steps.
func TestStepLimit(t *testing.T) {
	var endless []*llm.Answer
	for i := range 20 {
		endless = append(endless, calls(llm.Call{ID: fmt.Sprint(i), Name: "count"}))
	}
	tk := newTalk(t, nil, endless...)
	if err := tk.RunTurn(t.Context(), "Count.", tk.tell); !errors.Is(err, agent.ErrTooManySteps) || len(tk.counted) != 8 {
		t.Errorf("%v after %d calls", err, len(tk.counted))
	}
}

// A skill whose files, scripts or tools are used stays active. An unused one is
// unloaded, and the model gets a notice.
func TestUseKeepsSkillActive(t *testing.T) {
	about := func(i int) *llm.Answer {
		return calls(llm.Call{ID: fmt.Sprint("u", i), Name: "count", Arguments: `{"skill":"tides","path":"a.md"}`})
	}
	answers := []*llm.Answer{calls(load("1", "tides"), load("2", "ships")), says("loaded")}
	for i := range 7 {
		answers = append(answers, about(i), says("read"))
	}
	tk := newTalk(t, nil, answers...)
	tk.turn(t, "Load them.")
	for range 7 {
		tk.turn(t, "Read on.")
	}
	tk.prefixes(t)
	var force []string
	for _, a := range tk.session.Active() {
		force = append(force, a.Skill.Name)
	}
	if !slices.Equal(force, []string{"tides"}) || !slices.Contains(tk.told, "skill_unloaded ships") {
		t.Errorf("active skills: %v; told %v", force, tk.told)
	}
	var notices []string
	for _, m := range tk.model.requests[len(tk.model.requests)-1].Messages {
		if m.Role == llm.Notice {
			notices = append(notices, m.Text())
		}
	}
	if len(notices) != 1 || !strings.Contains(notices[0], "ships is no longer in force") {
		t.Errorf("the model got %q", notices)
	}
}

// Calls that change something run in the order of the model.
func TestModifyingCallsRunInOrder(t *testing.T) {
	var all []llm.Call
	for i := range 8 {
		all = append(all, llm.Call{ID: fmt.Sprint(i), Name: "count", Arguments: fmt.Sprint(`{"n":`, i, `}`)})
	}
	tk := newTalk(t, nil, calls(all...), says("done"))
	tk.turn(t, "Count.")
	if want := []string{`{"n":0}`, `{"n":1}`, `{"n":2}`, `{"n":3}`, `{"n":4}`, `{"n":5}`, `{"n":6}`, `{"n":7}`}; !slices.Equal(tk.counted, want) {
		t.Errorf("called with %v", tk.counted)
	}
}

// A load in the log without its result is returned from the log, because its
// instructions are nowhere else.
func TestCrashAfterLoadKeepsInstructions(t *testing.T) {
	log := &session.MemoryLog{}
	before := newTalk(t, log)
	for _, e := range []session.Event{
		{Start: &session.Start{Instructions: "Help."}},
		{Message: &session.Message{Role: llm.User, Text: "Load it."}},
		{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{{ID: "1", Name: "load_skill", Arguments: `{"name":"tides"}`}}}},
		{CallStarted: &session.CallStart{Call: "1"}},
	} {
		if err := before.session.Append(t.Context(), e); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := before.session.Load(t.Context(), "tides", nil); err != nil {
		t.Fatal(err)
	}
	tk := newTalk(t, log, says("done"))
	if err := tk.Resume(t.Context(), tk.tell); err != nil {
		t.Fatal(err)
	}
	r := tk.model.requests[0].Messages[2].Parts[0].(llm.Result)
	if text := string(r.Parts[0].(llm.Text)); !strings.Contains(text, "Add one hour in summer.") {
		t.Errorf("the model got %q", text)
	}
}

// If the configuration cannot be read, no tool is called.
func TestNewRequiresConfiguration(t *testing.T) {
	tk := newTalk(t, nil, calls(llm.Call{ID: "1", Name: "count"}), says("sorry"))
	tk.Agent = agent.New(tk.model, tk.session, &agent.Options{Tools: []agent.Tool{{Tool: llm.Tool{Name: "count"}, Call: func(context.Context, json.RawMessage) (*agent.Outcome, error) {
		t.Error("it was called")
		return &agent.Outcome{}, nil
	}}}, BeforeCall: func(context.Context) error { return errors.New("loadout.yaml:3: no such key") }})
	tk.turn(t, "Count.")
	r := tk.model.requests[1].Messages[2].Parts[0].(llm.Result)
	if text := string(r.Parts[0].(llm.Text)); !r.Error || !strings.Contains(text, "no such key") {
		t.Errorf("the model got %q", text)
	}
}
