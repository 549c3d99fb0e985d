package agent

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"

	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Turn takes what a person says, and returns when the model is done with it. tell is
// given each event, one at a time; it may be nil. The error is [ErrSteps], a
// [*llm.CutError] or [*llm.StatusError] of the model, or says that the session
// could not be written or ctx ended; what happened before stays in the session.
func (a *Agent) Turn(ctx context.Context, text string, tell func(Event)) error {
	a.turns.Lock()
	defer a.turns.Unlock()
	t := a.turn(tell)
	if err := t.begin(ctx); err != nil {
		return err
	}
	if err := t.finish(ctx); err != nil { // calls that a crash left
		return err
	}
	if err := a.session.Say(ctx, session.RoleUser, text); err != nil {
		return err
	}
	t.announce()
	return t.run(ctx)
}

// Resume goes on with a turn that was broken off, if there is one.
func (a *Agent) Resume(ctx context.Context, tell func(Event)) error {
	a.turns.Lock()
	defer a.turns.Unlock()
	t := a.turn(tell)
	if len(t.open()) == 0 {
		return nil
	}
	if err := t.finish(ctx); err != nil {
		return err
	}
	return t.run(ctx)
}

// turn is one turn under way.
type turn struct {
	*Agent
	tell func(Event)

	mu   sync.Mutex // one event at a time
	told int64      // the last event of the session that was looked at for it
}

func (a *Agent) turn(tell func(Event)) *turn {
	t := &turn{Agent: a, tell: tell}
	if events := a.session.Events(0); len(events) > 0 {
		t.told = events[len(events)-1].Seq
	}
	return t
}

func (t *turn) say(e Event) {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tell(e)
}

// begin records what the model is told first, once in a conversation.
func (t *turn) begin(ctx context.Context) error {
	for _, e := range t.session.Events(0) {
		if e.Begun != nil {
			return nil
		}
	}
	return t.session.Append(ctx, session.Event{Type: session.TypeBegun, Begun: &session.Begun{Instructions: t.opts.Instructions}})
}

// run asks the model until it wants no more tools.
func (t *turn) run(ctx context.Context) error {
	for range t.opts.MaxSteps {
		answer, err := t.ask(ctx)
		if err != nil {
			return err
		}
		if answer.Stop == llm.StopPause {
			continue
		}
		if len(answer.Calls()) == 0 {
			if answer.Stop == llm.StopLength && wanted(answer) {
				continue // it was told that its call was cut
			}
			t.say(Event{Type: Done, Reason: string(answer.Stop)})
			return nil
		}
		if err := t.finish(ctx); err != nil {
			return err
		}
	}
	return ErrSteps
}

// ask has the model answer, and records what it says.
func (t *turn) ask(ctx context.Context) (*llm.Answer, error) {
	req := &llm.Request{MaxTokens: t.opts.MaxTokens, Thinking: t.opts.Thinking}
	for _, tool := range t.tools {
		req.Tools = append(req.Tools, tool.Tool)
	}
	req.Instructions, req.Messages = Render(t.session.Events(0))
	answer, err := llm.Ask(ctx, t.model, req, func(e llm.Event) {
		switch e := e.(type) {
		case llm.TextDelta:
			t.say(Event{Type: Text, Text: string(e)})
		case llm.ThinkingDelta:
			t.say(Event{Type: Thinking, Text: string(e)})
		}
	})
	if cut := (*llm.CutError)(nil); errors.As(err, &cut) {
		if m := t.message(&cut.Answer); m.Text != "" { // what a person has seen
			m.Stop = "cut"
			err = errors.Join(err, t.session.Append(context.WithoutCancel(ctx), session.Event{Type: session.TypeMessage, Message: m}))
		}
	}
	if err != nil {
		return nil, err
	}
	events := []session.Event{{Type: session.TypeMessage, Message: t.message(answer)}}
	if answer.Stop == llm.StopLength && wanted(answer) {
		events = append(events, session.Event{Type: session.TypeNotice, Notice: &session.Notice{
			Text: "Your last message was cut by its limit of tokens in the middle of a call. The call was not made. Make it again in fewer words, or in parts."}})
	}
	if err := t.session.Append(ctx, events...); err != nil {
		return nil, err
	}
	t.say(Event{Type: Usage, Usage: usage(answer.Usage), Model: t.model.Name()})
	return answer, nil
}

// wanted says whether there is a call in an answer, also one that may not be made.
func wanted(a *llm.Answer) bool {
	return slices.ContainsFunc(a.Message.Parts, func(p llm.Part) bool { _, call := p.(llm.Call); return call })
}

// message is an answer as the session keeps it, with the calls that may be made;
// what was thought only where the answer came to its end.
func (t *turn) message(a *llm.Answer) *session.Message {
	m := &session.Message{Role: session.RoleAssistant, Text: a.Message.Words(), Model: t.model.Name(), Stop: string(a.Stop), Usage: usage(a.Usage)}
	for _, c := range a.Calls() {
		m.Calls = append(m.Calls, session.Call{ID: c.ID, Name: c.Name, Arguments: c.Arguments})
	}
	for _, p := range a.Message.Parts {
		if thought, ok := p.(llm.Thinking); ok && (a.Stop == llm.StopEnd || a.Stop == llm.StopTools || a.Stop == llm.StopPause) {
			m.Thinking = append(m.Thinking, session.Thinking{Vendor: thought.Vendor, Text: thought.Text, Signature: thought.Signature, Redacted: thought.Redacted})
		}
	}
	return m
}

func usage(u llm.Usage) *session.Usage {
	return &session.Usage{Input: u.Input, CacheRead: u.CacheRead, CacheWrite: u.CacheWrite, Output: u.Output}
}

// openCall is a call without a result.
type openCall struct {
	session.Call
	started bool // and maybe made
}

// open are the calls that have no result yet, in their order.
func (t *turn) open() []openCall {
	var out []openCall
	for _, e := range t.session.Events(0) {
		switch {
		case e.Message != nil && e.Message.Role == session.RoleAssistant:
			out = nil
			for _, c := range e.Message.Calls {
				out = append(out, openCall{Call: c})
			}
		case e.Started != nil:
			for i := range out {
				out[i].started = out[i].started || out[i].ID == e.Started.Call
			}
		case e.Result != nil:
			for i := range out {
				if out[i].ID == e.Result.Call {
					out = append(out[:i:i], out[i+1:]...)
					break
				}
			}
		}
	}
	return out
}

// finish makes the calls that have no result: those that only read at once, and
// others one after the other, in the order of the model.
func (t *turn) finish(ctx context.Context) error {
	calls := t.open()
	for len(calls) > 0 {
		n := 0
		for n < len(calls) && t.reads(calls[n]) {
			n++
		}
		n = max(n, 1)
		var running sync.WaitGroup
		errs := make([]error, n)
		for i, c := range calls[:n] {
			running.Go(func() { errs[i] = t.make(ctx, c) })
		}
		running.Wait()
		if err := errors.Join(errs...); err != nil {
			return err
		}
		calls = calls[n:]
	}
	return nil
}

func (t *turn) reads(c openCall) bool {
	tool := t.tool(c.Name)
	return tool != nil && tool.Reads
}

// make makes one call, and records what came of it.
func (t *turn) make(ctx context.Context, c openCall) error {
	out, err := t.call(ctx, c)
	if err != nil {
		return fmt.Errorf("call %s: %w", c.Name, err)
	}
	res := &session.Returned{Call: c.ID, Text: out.Text, Images: out.Images, Error: out.Error}
	if err := t.session.Append(context.WithoutCancel(ctx), session.Event{Type: session.TypeResult, Result: res}); err != nil {
		return err
	}
	t.announce()
	t.say(Event{Type: ToolResult, Call: &c.Call, Result: res})
	return nil
}

func (t *turn) call(ctx context.Context, c openCall) (*Outcome, error) {
	tool := t.tool(c.Name)
	switch {
	case tool == nil:
		return &Outcome{Text: fmt.Sprintf("There is no tool %q. Tools of skills and servers are called with call_tool.", c.Name), Error: true}, nil
	case c.started && !tool.Repeatable:
		return &Outcome{Text: "It is not known whether this call was made: the program ended before it came back. It was not made again. See whether it had an effect, and ask the person before you repeat it.", Error: true}, nil
	}
	if loaded := t.loadedBy(c); loaded != "" {
		return &Outcome{Text: loaded}, nil
	}
	args := json.RawMessage(c.Arguments)
	if len(args) == 0 {
		args = json.RawMessage("{}")
	}
	if !json.Valid(args) {
		return &Outcome{Text: "The arguments are no JSON. The call was not made.", Error: true}, nil
	}
	if t.opts.Before != nil {
		if err := t.opts.Before(ctx); err != nil {
			return &Outcome{Text: "Nothing is called while the configuration cannot be read: " + err.Error() + ".", Error: true}, nil
		}
	}
	if err := t.session.Append(ctx, session.Event{Type: session.TypeStarted, Started: &session.Started{Call: c.ID}}); err != nil {
		return nil, err
	}
	t.say(Event{Type: ToolCall, Call: &c.Call})
	out, err := tool.Call(ctx, args)
	if err == nil {
		err = t.use(ctx, args)
	}
	return out, err
}

// loadedBy is what a load told that came into the log before the program ended, and
// whose result did not.
func (t *turn) loadedBy(c openCall) string {
	if !c.started || c.Name != "load_skill" {
		return ""
	}
	var texts []string
	begun := false
	for _, e := range t.session.Events(0) {
		switch {
		case e.Started != nil && e.Started.Call == c.ID:
			begun, texts = true, nil
		case begun && e.Loaded != nil:
			texts = append(texts, e.Loaded.Text)
		}
	}
	return strings.Join(texts, "\n")
}

// use notes which skill a call was about, so that it stays in force: one whose file
// or script was named, or that brought the tool that was called.
func (t *turn) use(ctx context.Context, args json.RawMessage) error {
	var about struct {
		Skill string `json:"skill"`
		Name  string `json:"name"` // of a tool
	}
	if json.Unmarshal(args, &about) != nil {
		return nil
	}
	for _, a := range t.session.Active() {
		if about.Skill != "" && a.Skill.Name == about.Skill || about.Name != "" && slices.Contains(a.Tools, about.Name) {
			if err := t.session.Use(ctx, a.Skill); err != nil {
				return err
			}
		}
	}
	return nil
}

// announce tells of skills that came into force or went out of it, once each.
func (t *turn) announce() {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.session.Events(t.told) {
		t.told = e.Seq
		switch {
		case e.Loaded != nil:
			t.tell(Event{Type: SkillLoaded, Skill: e.Loaded.Skill.Name})
		case e.Unloaded != nil:
			t.tell(Event{Type: SkillUnloaded, Skill: e.Unloaded.Skill.Name, Reason: e.Unloaded.Reason})
		}
	}
}
