package agent_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/agent"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// jsonText returns the texts of a request.
func jsonText(r *llm.Request) []string {
	var out []string
	for _, m := range r.Messages {
		for _, p := range m.Parts {
			switch p := p.(type) {
			case llm.Text:
				out = append(out, string(p))
			case llm.Result:
				out = append(out, string(p.Parts[0].(llm.Text)))
			}
		}
	}
	return out
}

func holds(all []string, part string) bool {
	return slices.ContainsFunc(all, func(s string) bool { return strings.Contains(s, part) })
}

// A conversation close to the context window is compacted. The request then has
// the summary, the active instructions and the current catalog, and nothing
// else of the earlier conversation.
func TestCompactionKeepsLoadedSkills(t *testing.T) {
	big := says("loaded")
	big.Usage = llm.Usage{Input: 900, Output: 10}
	tk := newTalkWith(t, nil, &agent.Options{ContextWindow: 1000, RenewInstructions: func() string { return "Help, with new skills." }},
		calls(load("1", "tides")), big, says("They asked for tides."), says("It is at noon."))
	tk.turn(t, "Load the tides.")
	tk.turn(t, "When is noon?")
	tk.prefixesBut(t, 3)
	asked, after := tk.model.requests[2], tk.model.requests[3]
	if got := asked.Messages[len(asked.Messages)-1].Text(); !strings.Contains(got, "will be compacted") {
		t.Errorf("the model is asked %q", got)
	}
	got := jsonText(after)
	if !holds(got, "They asked for tides.") || !holds(got, "Add one hour in summer.") || holds(got, "Load the tides.") {
		t.Errorf("after the compaction the model is sent %q", got)
	}
	if after.Instructions != "Help, with new skills." || len(after.Tools) != len(asked.Tools) {
		t.Errorf("the instructions are %q, and there are %d tools", after.Instructions, len(after.Tools))
	}
	if !slices.Contains(tk.told, "compacted") || slices.Contains(tk.told, "skill_unloaded tides") {
		t.Errorf("got %v", tk.told)
	}
	if usage := tk.UsageByModel()["script:1"]; usage.Input != 900+10+10 {
		t.Errorf("spent %+v", usage)
	}
	// Loaded skills stay active: their text is in the conversation.
	res, err := tk.session.Load(t.Context(), "tides", nil)
	if err != nil || res.State != session.StateAlreadyLoaded {
		t.Errorf("loaded again: %v, %v", res.State, err)
	}
}

// Skills beyond the limit become inactive, the last used stay. If the model
// cannot write a summary, the conversation still continues.
func TestCompactionKeepsWithinBudget(t *testing.T) {
	for _, tt := range []struct {
		name   string
		answer *llm.Answer // answer to the request for a summary
		want   string
	}{
		{"a summary", says("Two skills."), "Two skills."},
		{"an answer of nothing", says(""), "user: Load both."},
	} {
		t.Run(tt.name, func(t *testing.T) {
			tk := newTalkWith(t, nil, &agent.Options{AttachTokens: 40},
				calls(load("1", "tides")), calls(load("2", "ships")), says("loaded"), tt.answer, says("fine"))
			tk.turn(t, "Load both.")
			if err := tk.Compact(t.Context(), tk.tell); err != nil {
				t.Fatal(err)
			}
			tk.turn(t, "Go on.")
			var force []string
			for _, a := range tk.session.Active() {
				force = append(force, a.Skill.Name)
			}
			got := jsonText(tk.model.requests[len(tk.model.requests)-1])
			if !slices.Equal(force, []string{"ships"}) || !holds(got, tt.want) || !holds(got, "tides is not loaded any more") || holds(got, "Add one hour") {
				t.Errorf("active skills: %v; the model is sent %q", force, got)
			}
		})
	}
}

func TestNothingToCompact(t *testing.T) {
	tk := newTalk(t, nil)
	if err := tk.Compact(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "nothing to compact") {
		t.Errorf("got %v", err)
	}
}

// named is a model with another name.
type named struct {
	*script
	name string
}

func (n *named) Name() string { return n.name }

// B: the model that a skill names answers while the skill is active, and then
// the conversation's own again. A model that is not configured is ignored, with
// one notice.
func TestSkillOverridesModel(t *testing.T) {
	wants := func(id, dir, model string) session.Event {
		return session.Event{Loaded: &session.SkillLoad{Skill: session.ID{Name: id, Origin: "mine", Dir: dir}, Text: "x", Model: model}}
	}
	var asked []string
	tk := newTalkWith(t, nil, &agent.Options{})
	own := &named{tk.model, "script:own"}
	small := &named{tk.model, "script:small"}
	a := agent.New(own, tk.session, &agent.Options{SkillModel: func(name string) (llm.Model, error) {
		asked = append(asked, name)
		if name == "small" {
			return small, nil
		}
		return nil, errors.New("no such model")
	}})
	turn := func(text, want string) {
		t.Helper()
		tk.model.answers = append(tk.model.answers, says("yes"))
		if err := a.RunTurn(t.Context(), text, func(e agent.Event) {
			tk.told = append(tk.told, string(e.Type)+" "+e.Text)
			if e.Type == agent.Usage && e.Model != want {
				t.Errorf("%s: %s answered, want %s", text, e.Model, want)
			}
		}); err != nil {
			t.Fatal(err)
		}
	}
	turn("before", "script:own")
	if err := tk.session.Append(t.Context(), wants("a", "tides", "small"), wants("b", "ships", "huge")); err != nil {
		t.Fatal(err)
	}
	turn("with both", "script:small")
	turn("again", "script:small")
	if n := len(slices.DeleteFunc(slices.Clone(tk.told), func(s string) bool { return !strings.HasPrefix(s, "notice the skill b wants the model huge") })); n != 1 {
		t.Errorf("%d notices in %q", n, tk.told)
	}
	if _, err := tk.session.Unload(t.Context(), "a", "done", false); err != nil {
		t.Fatal(err)
	}
	turn("after", "script:own")
	a.SetModel(small)
	turn("chosen", "script:small")
}

// disable-model-invocation hides a skill from the model but not from the user,
// whose arguments replace the placeholders.
func TestUserInvokesSkill(t *testing.T) {
	tk := newTalk(t, nil, calls(load("1", "secret")), says("I may not."), says("psst"), says("again"))
	tk.turn(t, "Load it.")
	if got := jsonText(tk.model.requests[1]); !holds(got, "only users can load") || holds(got, "Whisper") {
		t.Errorf("the model got %q", got)
	}
	if err := tk.InvokeSkill(t.Context(), "secret", "the time", tk.tell); err != nil {
		t.Fatal(err)
	}
	got := jsonText(tk.model.requests[2])
	if !holds(got, "Whisper the time.") || got[len(got)-1] != "/secret the time" {
		t.Errorf("the model got %q", got)
	}
	if err := tk.InvokeSkill(t.Context(), "secret", "again", tk.tell); err != nil {
		t.Fatal(err)
	}
	if got := jsonText(tk.model.requests[3]); got[len(got)-1] != "/secret again" || !holds(got, "Whisper again.") {
		t.Errorf("the model got %q", got)
	}
	tk.prefixes(t)
	if err := tk.InvokeSkill(t.Context(), "nobody", "", tk.tell); err == nil || !strings.Contains(err.Error(), "nobody") {
		t.Errorf("got %v", err)
	}
	if n := len(tk.model.requests); n != 4 {
		t.Errorf("%d requests", n)
	}
}

// The model gets a skill that the user loaded with the next message.
func TestUserLoadsSkill(t *testing.T) {
	tk := newTalk(t, nil, says("first"), says("second"))
	tk.turn(t, "Hello.")
	if r, err := tk.session.Load(t.Context(), "tides", &session.LoadOptions{Retention: session.RetainPinned, Direct: true}); err != nil || r.State != session.StateLoaded {
		t.Fatal(r, err)
	}
	tk.turn(t, "Go.")
	tk.prefixes(t)
	if got := jsonText(tk.model.requests[1]); !holds(got, "Add one hour in summer.") {
		t.Errorf("the model got %q", got)
	}
}

// Instructions of a tool apply from then on. They follow the results, and
// earlier messages do not change.
func TestToolInstructionsAreAppended(t *testing.T) {
	rules := agent.Tool{Tool: llm.Tool{Name: "rules"}, ReadOnly: true, Call: func(context.Context, json.RawMessage) (*agent.Outcome, error) {
		return &agent.Outcome{Text: "read", Instructions: "Answer in French."}, nil
	}}
	tk := newTalkWith(t, nil, &agent.Options{Tools: []agent.Tool{rules}}, calls(llm.Call{ID: "1", Name: "rules"}, llm.Call{ID: "2", Name: "count"}), says("oui"), says("non"))
	tk.turn(t, "Read the rules.")
	tk.turn(t, "And now?")
	tk.prefixes(t)
	last := tk.model.requests[1].Messages
	if n := last[len(last)-1]; n.Role != llm.Notice || n.Text() != "Answer in French." || len(last[len(last)-2].Parts) != 2 {
		t.Errorf("the model is sent %+v", last)
	}
}

// W28: a tool whose answer is the user's next message ends the turn.
func TestW28DeferredInputEndsTheTurn(t *testing.T) {
	form := agent.Tool{Tool: llm.Tool{Name: "form"}, Call: func(context.Context, json.RawMessage) (*agent.Outcome, error) {
		return &agent.Outcome{Text: "The person fills it in.", Wait: true}, nil
	}}
	tk := newTalkWith(t, nil, &agent.Options{Tools: []agent.Tool{form}}, calls(llm.Call{ID: "1", Name: "form"}), says("Thank you, Ann."))
	tk.turn(t, "Register me.")
	if len(tk.model.requests) != 1 || tk.told[len(tk.told)-1] != "done" {
		t.Fatalf("%d requests; told %v", len(tk.model.requests), tk.told)
	}
	if err := tk.Resume(t.Context(), nil); err != nil || len(tk.model.requests) != 1 {
		t.Errorf("it does not wait: %v", err)
	}
	tk.turn(t, "name: Ann")
	tk.prefixes(t)
}

// A turn without its last answer continues, whether it has results already or
// only the question.
func TestResumeContinuesAfterResults(t *testing.T) {
	tk := newTalk(t, nil, calls(llm.Call{ID: "1", Name: "count"}))
	if err := tk.RunTurn(t.Context(), "Count.", tk.tell); err == nil {
		t.Fatal("the script was not over")
	}
	if last := tk.told[len(tk.told)-1]; last != "error" {
		t.Errorf("got %v", tk.told)
	}
	tk.model.answers = []*llm.Answer{says("one")}
	if err := tk.Resume(t.Context(), tk.tell); err != nil || len(tk.counted) != 1 {
		t.Fatal(err, tk.counted)
	}
	tk.prefixes(t)
	if err := tk.Resume(t.Context(), tk.tell); err != nil || len(tk.model.requests) != 3 {
		t.Errorf("%d requests: %v", len(tk.model.requests), err)
	}
}

// A tool that reports its start is called again after a crash before the start,
// but not after it.
func TestBegin(t *testing.T) {
	for _, begun := range []bool{false, true} {
		t.Run(fmt.Sprint(begun), func(t *testing.T) {
			log, made := &session.MemoryLog{}, 0
			crash := errors.New("the machine is off")
			slow := func(asks error) agent.Tool {
				return agent.Tool{Tool: llm.Tool{Name: "slow"}, ReportsStart: true, Call: func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
					if asks != nil && !begun {
						return nil, asks
					}
					if err := agent.ReportStart(ctx); err != nil {
						return nil, err
					}
					if made++; asks != nil {
						return nil, asks
					}
					return &agent.Outcome{Text: "made"}, nil
				}}
			}
			tk := newTalkWith(t, log, &agent.Options{Tools: []agent.Tool{slow(crash)}}, calls(llm.Call{ID: "1", Name: "slow"}))
			if err := tk.RunTurn(t.Context(), "Do it.", nil); !errors.Is(err, crash) {
				t.Fatal(err)
			}
			made = 0
			tk = newTalkWith(t, log, &agent.Options{Tools: []agent.Tool{slow(nil)}}, says("done"))
			if err := tk.Resume(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if want := map[bool]int{false: 1, true: 0}[begun]; made != want {
				t.Errorf("made %d times, want %d", made, want)
			}
		})
	}
}

// A turn ends when it exceeds its token limit.
func TestTokenLimit(t *testing.T) {
	var endless []*llm.Answer
	for i := range 20 {
		a := calls(llm.Call{ID: fmt.Sprint(i), Name: "count"})
		a.Usage = llm.Usage{Input: 100}
		endless = append(endless, a)
	}
	tk := newTalkWith(t, nil, &agent.Options{TurnTokens: 250, MaxSteps: 20}, endless...)
	if err := tk.RunTurn(t.Context(), "Count.", tk.tell); !errors.Is(err, agent.ErrTooManyTokens) || len(tk.counted) != 3 {
		t.Errorf("%v after %d calls", err, len(tk.counted))
	}
}

// The step limit of a turn includes the steps before an interruption.
func TestStepLimitIncludesStepsBeforeResume(t *testing.T) {
	log := &session.MemoryLog{}
	step := func(i int) *llm.Answer { return calls(llm.Call{ID: fmt.Sprint(i), Name: "count"}) }
	first := newTalkWith(t, log, &agent.Options{MaxSteps: 3}, step(1), step(2)) // the model then fails
	if err := first.RunTurn(t.Context(), "Count.", first.tell); err == nil || len(first.counted) != 2 {
		t.Fatalf("%v after %d calls", err, len(first.counted))
	}
	second := newTalkWith(t, log, &agent.Options{MaxSteps: 3}, step(3), step(4))
	if err := second.Resume(t.Context(), second.tell); !errors.Is(err, agent.ErrTooManySteps) || len(second.counted) != 1 {
		t.Errorf("%v after %d calls, want the step limit after 1", err, len(second.counted))
	}
}

// K18: the model gets the beginning and the end of a result that is too long.
func TestK18OutputLimit(t *testing.T) {
	flood := agent.Tool{Tool: llm.Tool{Name: "flood"}, Call: func(context.Context, json.RawMessage) (*agent.Outcome, error) {
		return &agent.Outcome{Text: "begin" + strings.Repeat("é", agent.MaxResult) + "end"}, nil
	}}
	tk := newTalkWith(t, nil, &agent.Options{Tools: []agent.Tool{flood}}, calls(llm.Call{ID: "1", Name: "flood"}), says("much"))
	tk.turn(t, "Flood me.")
	text := jsonText(tk.model.requests[1])[1]
	if len(text) > agent.MaxResult+100 || !strings.HasPrefix(text, "begin") || !strings.HasSuffix(text, "end") || !strings.Contains(text, "are left out") {
		t.Errorf("%d bytes: %.20q … %q", len(text), text, text[len(text)-20:])
	}
}

// K23: the progress of a tool is reported with its call.
func TestK23Progress(t *testing.T) {
	slow := agent.Tool{Tool: llm.Tool{Name: "slow"}, Call: func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
		agent.ReportProgress(ctx, "half")
		return &agent.Outcome{Text: "whole"}, nil
	}}
	tk := newTalkWith(t, nil, &agent.Options{Tools: []agent.Tool{slow}}, calls(llm.Call{ID: "7", Name: "slow"}), says("done"))
	var got []string
	if err := tk.RunTurn(t.Context(), "Go.", func(e agent.Event) {
		if e.Type == agent.ToolProgress {
			got = append(got, e.Call.ID+" "+e.Text)
		}
	}); err != nil || !slices.Equal(got, []string{"7 half"}) {
		t.Errorf("%v, %q", err, got)
	}
	agent.ReportProgress(t.Context(), "nobody listens")
}

// Two calls with the same ID in one message each get a result.
func TestCallsWithDuplicateID(t *testing.T) {
	tk := newTalk(t, nil, calls(llm.Call{ID: "a", Name: "count", Arguments: `{"n":1}`}, llm.Call{ID: "a", Name: "count", Arguments: `{"n":2}`}), says("done"))
	tk.turn(t, "Count.")
	tk.prefixes(t)
	var ids []string
	for _, p := range tk.model.requests[1].Messages[2].Parts {
		r := p.(llm.Result)
		ids = append(ids, r.Call+" "+string(r.Parts[0].(llm.Text)))
	}
	if !slices.Equal(ids, []string{"a 1", "a_2 2"}) || len(tk.counted) != 2 {
		t.Errorf("results %q of %d calls", ids, len(tk.counted))
	}
}

// If a crash left one of several concurrent loads in the log, that one is
// returned from the log and the others are made.
func TestCrashBetweenParallelLoads(t *testing.T) {
	log := &session.MemoryLog{}
	before := newTalk(t, log)
	for _, e := range []session.Event{
		{Start: &session.Start{Instructions: "Help."}},
		{Message: &session.Message{Role: llm.User, Text: "Load them."}},
		{Message: &session.Message{Role: llm.Assistant, Calls: []llm.Call{
			{ID: "a", Name: "load_skill", Arguments: `{"name":"tides"}`}, {ID: "b", Name: "load_skill", Arguments: `{"name":"mine/ships"}`}}}},
		{CallStarted: &session.CallStart{Call: "a"}},
		{CallStarted: &session.CallStart{Call: "b"}},
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
	results := tk.model.requests[0].Messages[2].Parts
	for i, want := range []string{"Add one hour", "Ships are long"} {
		text := string(results[i].(llm.Result).Parts[0].(llm.Text))
		if !strings.Contains(text, want) || i == 1 && strings.Contains(text, "Add one hour") {
			t.Errorf("for call %d the model got %q", i, text)
		}
	}
	if n := len(tk.session.Active()); n != 2 {
		t.Errorf("%d skills are active", n)
	}
}

// appendLog records how events were appended.
type appendLog struct {
	session.MemoryLog
	mu      sync.Mutex
	appends [][]string
}

func (l *appendLog) Append(ctx context.Context, events ...*session.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var types []string
	for _, e := range events {
		types = append(types, e.Type)
	}
	l.appends = append(l.appends, types)
	return l.MemoryLog.Append(ctx, events...)
}

// The start of a call that only reads is recorded with its result, or when the call
// is interrupted. The start of any other call is recorded before it.
func TestStartsOfReadingCalls(t *testing.T) {
	log := &appendLog{}
	before := func(string) string { return "" }
	tool := func(name string, tool agent.Tool) agent.Tool {
		tool.Tool = llm.Tool{Name: name}
		tool.Call = func(ctx context.Context, _ json.RawMessage) (*agent.Outcome, error) {
			if tool.ReportsStart {
				if err := agent.ReportStart(ctx); err != nil {
					return nil, err
				}
			}
			if name == "hang" {
				return nil, errors.New("interrupted")
			}
			return &agent.Outcome{Text: before(name)}, nil
		}
		return tool
	}
	reads := agent.Tool{Repeatable: true, ReadOnly: true}
	o := &agent.Options{Tools: []agent.Tool{tool("read", reads), tool("report", agent.Tool{Repeatable: true, ReadOnly: true, ReportsStart: true}),
		tool("hang", reads), tool("save", agent.Tool{Repeatable: true}), tool("once", agent.Tool{ReadOnly: true})}}
	started := func() bool { return slices.Contains(log.appends[len(log.appends)-1], "call_started") }
	for _, c := range []struct {
		tool  string
		early bool // whether the start is recorded before the call
		want  []string
	}{
		{"read", false, []string{"message", "call_started tool_result", "message"}},
		{"report", false, []string{"message", "call_started tool_result", "message"}},
		{"save", true, []string{"message", "call_started", "tool_result", "message"}},
		{"once", true, []string{"message", "call_started", "tool_result", "message"}},
		{"hang", false, []string{"message", "call_started"}},
	} {
		tk := newTalkWith(t, log, o, calls(llm.Call{ID: c.tool, Name: c.tool}), says("done"))
		var early bool
		before = func(string) string { early = started(); return "" }
		n := len(log.appends)
		if err := tk.RunTurn(t.Context(), "Go.", nil); (err != nil) != (c.tool == "hang") {
			t.Fatal(err)
		}
		var got []string
		for _, types := range log.appends[n:] {
			got = append(got, strings.Join(types, " "))
		}
		for len(got) > 0 && got[0] != "message" {
			got = got[1:] // the start of the conversation
		}
		if got = got[1:]; !slices.Equal(got, c.want) || early != c.early {
			t.Errorf("%s: appended %q, start before the call %v, want %q, %v", c.tool, got, early, c.want, c.early)
		}
	}
	events, err := log.Read(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	for i, e := range events {
		if e.Result != nil && e.Time.Before(events[i-1].Time) {
			t.Errorf("the start of call %s is later than its result", e.Result.Call)
		}
	}
}

// The instructions of a conversation are taken once, at its first turn. A later
// program keeps them until the conversation is compacted.
func TestInstructionsAreTakenOnce(t *testing.T) {
	log := &session.MemoryLog{}
	sent := func(now string, compact bool) (instructions []string) {
		s, err := session.Open(t.Context(), nil, &session.Options{Log: log})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		m := &script{answers: []*llm.Answer{says("Yes."), says("A summary."), says("Yes.")}}
		a := agent.New(m, s, &agent.Options{RenewInstructions: func() string { return now }})
		if err := a.RunTurn(t.Context(), "Go on.", nil); err != nil {
			t.Fatal(err)
		}
		if compact {
			if err := a.Compact(t.Context(), nil); err != nil {
				t.Fatal(err)
			}
			if err := a.RunTurn(t.Context(), "Go on.", nil); err != nil {
				t.Fatal(err)
			}
		}
		for _, r := range m.requests {
			instructions = append(instructions, r.Instructions)
		}
		return instructions
	}
	for _, tt := range []struct {
		now     string
		compact bool
		want    []string
	}{
		{"one server", false, []string{"one server"}},
		{"two servers", true, []string{"one server", "one server", "two servers"}},
		{"three servers", false, []string{"two servers"}},
	} {
		if got := sent(tt.now, tt.compact); !slices.Equal(got, tt.want) {
			t.Errorf("with %s: %q, want %q", tt.now, got, tt.want)
		}
	}
}
