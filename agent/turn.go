package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// Turn takes what a person says, and returns when the model is done with it. tell is
// given each event, one at a time; it may be nil. The error is [ErrSteps],
// [ErrTokens], a [*llm.CutError] or [*llm.StatusError] of the model, or says that the
// session could not be written or ctx ended; what happened before stays in the
// session, and [Agent.Resume] goes on from there.
func (a *Agent) Turn(ctx context.Context, text string, tell func(Event)) error {
	return a.lead(tell, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		if err := t.session.Say(ctx, session.RoleUser, text); err != nil {
			return err
		}
		return t.run(ctx)
	})
}

// Resume goes on with a turn that was broken off, if there is one.
func (a *Agent) Resume(ctx context.Context, tell func(Event)) error {
	return a.lead(tell, func(t *turn) error {
		if !t.broken() {
			return nil
		}
		waits, err := t.finish(ctx)
		if err != nil || waits {
			return err
		}
		return t.run(ctx)
	})
}

// turn is one turn under way.
type turn struct {
	*Agent
	tell func(Event)

	mu   sync.Mutex // one event at a time
	told int64      // the last event of the session that was looked at for it
	over bool       // nothing is told any more
}

// lead does something as a turn, and tells of its error.
func (a *Agent) lead(tell func(Event), do func(*turn) error) error {
	a.turns.Lock()
	defer a.turns.Unlock()
	t := &turn{Agent: a, tell: tell}
	if events := a.session.Events(0); len(events) > 0 {
		t.told = events[len(events)-1].Seq
	}
	if a.opts.Desk != nil {
		defer a.opts.Desk.Watch(func(e ask.Event) {
			if e.Answer == nil && e.Ask.Session == a.session.ID() {
				t.say(Event{Type: Ask, Ask: &e.Ask})
			}
		})()
	}
	err := do(t)
	if err != nil {
		t.say(Event{Type: Error, Text: err.Error(), Session: a.session.ID()})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return err
}

func (t *turn) say(e Event) {
	if t.tell == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.tell(e)
	}
}

// start records what the model is told first, once in a conversation, and makes the
// calls that a crash left.
func (t *turn) start(ctx context.Context) error {
	begun := slices.ContainsFunc(t.session.Events(0), func(e session.Event) bool { return e.Begun != nil })
	if !begun {
		if err := t.session.Append(ctx, t.begun(t.opts.Instructions)); err != nil {
			return err
		}
	}
	if _, err := t.finish(ctx); err != nil {
		return err
	}
	t.forget(ctx)
	return t.renew(ctx)
}

// forget takes back questions of calls that nobody makes any more, as those of a
// program that ended in the middle of one.
func (t *turn) forget(ctx context.Context) {
	if t.opts.Desk == nil {
		return
	}
	open, err := t.opts.Desk.Open(ctx, t.session.ID(), policy.Principal{})
	for _, q := range open {
		if q.Kind == ask.Approval || q.Kind == ask.Elicitation {
			err = errors.Join(err, t.opts.Desk.Cancel(ctx, q.ID))
		}
	}
	if err != nil {
		t.say(Event{Type: Notice, Text: "old questions could not be taken back: " + err.Error()})
	}
}

// broken reports whether the last turn did not come to its end: somebody waits for
// an answer of the model.
func (t *turn) broken() bool {
	for _, e := range slices.Backward(t.session.Events(0)) {
		switch {
		case e.Message != nil && e.Message.Role == session.RoleAssistant:
			return goesOn(e.Message)
		case e.Result != nil:
			return !e.Result.Wait
		case e.Message != nil:
			return true
		}
	}
	return false
}

// goesOn reports whether a message of the model is not the end of its turn.
func goesOn(m *session.Message) bool {
	return len(m.Calls) > 0 || m.Stop == string(llm.StopPause) || m.Stop == stopCut
}

// run asks the model until it wants no more tools.
func (t *turn) run(ctx context.Context) error {
	t.announce()
	took := 0
	for range t.opts.MaxSteps {
		if t.opts.TurnTokens > 0 && took >= t.opts.TurnTokens {
			return ErrTokens
		}
		if t.full() {
			if err := t.compact(ctx); err != nil {
				return err
			}
		}
		answer, err := t.ask(ctx)
		if err != nil {
			return err
		}
		took += answer.Usage.Prompt() + answer.Usage.Output
		switch {
		case answer.Stop == llm.StopPause:
			continue
		case len(answer.Calls()) > 0:
			waits, err := t.finish(ctx)
			if err != nil {
				return err
			}
			if waits {
				t.done("wait")
				return nil
			}
			continue
		case answer.Stop == llm.StopLength && wanted(answer):
			continue // it was told that its call was cut
		}
		t.done(string(answer.Stop))
		return nil
	}
	return ErrSteps
}

// done tells that the turn is over.
func (t *turn) done(reason string) {
	t.say(Event{Type: Done, Reason: reason, Session: t.session.ID()})
}

// request is the conversation as a model is sent it.
func (t *turn) request() *llm.Request {
	req := &llm.Request{Tools: t.Tools(), MaxTokens: t.opts.MaxTokens, Thinking: t.opts.Thinking}
	req.Instructions, req.Messages = Render(t.session.Events(0))
	return req
}

// stopCut is why a message ends of which only a part came.
const stopCut = "cut"

// ask has the model answer, and records what it says.
func (t *turn) ask(ctx context.Context) (*llm.Answer, error) {
	model := t.model()
	answer, err := llm.Ask(ctx, model, t.request(), func(e llm.Event) {
		switch e := e.(type) {
		case llm.TextDelta:
			t.say(Event{Type: Text, Text: string(e)})
		case llm.ThinkingDelta:
			t.say(Event{Type: Thinking, Text: string(e)})
		}
	})
	if cut := (*llm.CutError)(nil); errors.As(err, &cut) {
		if m := message(&cut.Answer, model.Name()); m.Text != "" { // what a person has seen
			m.Stop = stopCut
			err = errors.Join(err, t.session.Append(context.WithoutCancel(ctx), session.Event{Type: session.TypeMessage, Message: m}))
		}
	}
	if err != nil {
		return nil, err
	}
	events := []session.Event{{Type: session.TypeMessage, Message: message(answer, model.Name())}}
	if answer.Stop == llm.StopLength && wanted(answer) {
		events = append(events, session.Event{Type: session.TypeNotice, Notice: &session.Notice{
			Text: "Your last message was cut by its limit of tokens in the middle of a call. The call was not made. Make it again in fewer words, or in parts."}})
	}
	if err := t.session.Append(ctx, events...); err != nil {
		return nil, err
	}
	t.say(Event{Type: Usage, Usage: usage(answer.Usage), Model: model.Name()})
	return answer, nil
}

// wanted says whether there is a call in an answer, also one that may not be made.
func wanted(a *llm.Answer) bool {
	return slices.ContainsFunc(a.Message.Parts, func(p llm.Part) bool { _, call := p.(llm.Call); return call })
}

// message is an answer as the session keeps it, with the calls that may be made;
// what was thought only where the answer came to its end.
func message(a *llm.Answer, model string) *session.Message {
	m := &session.Message{Role: session.RoleAssistant, Text: a.Message.Words(), Model: model, Stop: string(a.Stop), Usage: usage(a.Usage)}
	seen := map[string]bool{}
	for i, c := range a.Calls() {
		if seen[c.ID] { // or one of them would have no result
			c.ID = fmt.Sprintf("%s_%d", c.ID, i+1)
		}
		seen[c.ID] = true
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
	own := session.Usage(u)
	return &own
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
