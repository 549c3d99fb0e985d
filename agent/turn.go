package agent

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/session"
)

// RunTurn sends a user's message to the model and returns when the model is
// done, or when a tool ended the turn with [Outcome.Wait]. If an earlier turn
// was interrupted, its pending calls are made first.
//
// onEvent, which may be nil, is called with the events, one at a time, and not
// after RunTurn has returned. It must not start another turn.
//
// The error is [ErrTooManySteps], [ErrTooManyTokens], or another error of
// [llm.Model], of [Tool.Call] or of the session's log; see [llm.CutError] and
// [llm.StatusError]. RunTurn also returns an error if ctx is done. Earlier
// events stay in the session, and [Agent.Resume] continues from there.
func (a *Agent) RunTurn(ctx context.Context, text string, onEvent func(Event)) error {
	return a.RunMessage(ctx, UserMessage{Text: text}, onEvent)
}

// UserMessage is a message from the user.
type UserMessage struct {
	Text string
	// Images are sent to the model with the text, again with each later request
	// until the conversation is compacted.
	Images []llm.Image
	// Skill names a skill that the user invokes; see [Agent.InvokeSkill]. "" means
	// none.
	Skill string
}

// RunMessage is like [Agent.RunTurn], or [Agent.InvokeSkill] if the message names a
// skill.
func (a *Agent) RunMessage(ctx context.Context, m UserMessage, onEvent func(Event)) error {
	return a.withTurn(onEvent, func(t *turn) error {
		if err := t.start(ctx); err != nil {
			return err
		}
		if m.Skill != "" {
			if err := t.invokeSkill(ctx, m); err != nil {
				return err
			}
		} else if err := t.addMessage(ctx, m); err != nil {
			return err
		}
		return t.run(ctx)
	})
}

// Resume continues an interrupted turn, for example after a crash. It returns
// nil if there is none. A call that may have run is repeated only if its tool
// has [Tool.Repeatable]. onEvent and the errors are as in [Agent.RunTurn].
func (a *Agent) Resume(ctx context.Context, onEvent func(Event)) error {
	return a.withTurn(onEvent, func(t *turn) error {
		if !t.isInterrupted() {
			return nil
		}
		waits, err := t.runPendingCalls(ctx)
		if err != nil || waits {
			return err
		}
		return t.run(ctx)
	})
}

// turn holds the state of a turn in progress.
type turn struct {
	*Agent
	onEvent func(Event)

	mu      sync.Mutex // serializes events
	lastSeq int64      // last session event checked by emitSkillEvents
	over    bool       // whether the turn is over, so that no more events are emitted
}

// withTurn calls fn for a turn. If fn fails, withTurn emits the error and
// returns it.
func (a *Agent) withTurn(onEvent func(Event), fn func(*turn) error) error {
	a.turns.Lock()
	defer a.turns.Unlock()
	t := &turn{Agent: a, onEvent: onEvent, lastSeq: a.folded().Seq()}
	if a.opts.Approvals != nil {
		defer a.opts.Approvals.Subscribe(func(e approval.Event) {
			if e.Answer == nil && e.Request.Session == a.session.ID() {
				t.emit(Event{Type: ApprovalNeeded, ApprovalRequest: &e.Request})
			}
		})()
	}
	err := fn(t)
	if err != nil {
		t.emit(Event{Type: Error, Text: err.Error(), Session: a.session.ID()})
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.over = true
	return err
}

func (t *turn) emit(e Event) {
	if t.onEvent == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.over {
		t.onEvent(e)
	}
}

// start records the start of a new conversation and makes the calls that a
// crash left pending.
func (t *turn) start(ctx context.Context) error {
	if !t.folded().HasStarted() {
		instructions := t.opts.Instructions
		if instructions == "" && t.opts.RenewInstructions != nil {
			instructions = t.opts.RenewInstructions()
		}
		if err := t.session.Append(ctx, t.startEvent(instructions)); err != nil {
			return err
		}
	}
	if _, err := t.runPendingCalls(ctx); err != nil {
		return err
	}
	t.cancelStaleRequests(ctx)
	return t.notifySkillChanges(ctx)
}

// addMessage records changes to the active skills since the last message, and
// then adds the user's message.
func (t *turn) addMessage(ctx context.Context, m UserMessage) error {
	updated, err := t.session.Refresh(ctx)
	for _, u := range updated {
		t.emit(Event{Type: SkillUpdated, Skill: u.Skill.Name, Restored: u.Restored})
	}
	if err != nil {
		return err
	}
	return t.session.AddMessage(ctx, llm.User, m.Text, m.Images...)
}

// cancelStaleRequests cancels the approval requests of calls that were
// abandoned after a crash.
func (t *turn) cancelStaleRequests(ctx context.Context) {
	if t.opts.Approvals == nil {
		return
	}
	open, err := t.opts.Approvals.Pending(ctx, t.session.ID(), policy.Principal{})
	for _, q := range open {
		if q.Kind == approval.KindApproval || q.Kind == approval.KindElicitation {
			err = errors.Join(err, t.opts.Approvals.Cancel(ctx, q.ID))
		}
	}
	if err != nil {
		t.emit(Event{Type: Notice, Text: "couldn't cancel earlier approval requests: " + err.Error()})
	}
}

// isInterrupted reports whether the last turn is incomplete.
func (t *turn) isInterrupted() bool {
	for _, e := range slices.Backward(t.folded().Recent()) {
		switch {
		case e.Message != nil && e.Message.Role == llm.Assistant:
			return fold.ContinuesTurn(e.Message)
		case e.Result != nil:
			return !e.Result.Wait
		case e.Message != nil:
			return true
		}
	}
	return false
}

// run sends requests to the model until a response has no tool calls.
func (t *turn) run(ctx context.Context) error {
	t.emitSkillEvents()
	for {
		// The limits include what the turn did before an interruption.
		switch steps, tokens := t.folded().TurnCount(); {
		case steps >= t.opts.MaxSteps:
			return ErrTooManySteps
		case t.opts.TurnTokens > 0 && tokens >= t.opts.TurnTokens:
			return ErrTooManyTokens
		}
		if t.needsCompaction() {
			if err := t.compact(ctx); err != nil {
				return err
			}
		}
		answer, err := t.askModel(ctx)
		if err != nil {
			return err
		}
		switch {
		case answer.Stop == llm.StopPause:
			continue
		case len(answer.Calls()) > 0:
			waits, err := t.runPendingCalls(ctx)
			if err != nil {
				return err
			}
			if waits {
				t.emitDone("wait")
				return nil
			}
			continue
		case answer.Stop == llm.StopLength && hasCall(answer):
			continue // the model was told that its call was truncated
		}
		t.emitDone(string(answer.Stop))
		return nil
	}
}

// emitDone emits the event that ends the turn.
func (t *turn) emitDone(reason string) {
	t.emit(Event{Type: Done, Reason: reason, Session: t.session.ID()})
}

// request returns the next request to the model.
func (t *turn) request() *llm.Request {
	req := &llm.Request{Tools: t.Tools(), MaxTokens: t.opts.MaxTokens, Thinking: t.opts.Thinking}
	req.Instructions, req.Messages = t.folded().Request()
	return req
}

// askModel sends a request to the model and records the response.
func (t *turn) askModel(ctx context.Context) (*llm.Answer, error) {
	model := t.currentModel()
	answer, err := llm.Ask(ctx, model, t.request(), func(e llm.Event) {
		switch e := e.(type) {
		case llm.TextDelta:
			t.emit(Event{Type: Text, Text: string(e)})
		case llm.ThinkingDelta:
			t.emit(Event{Type: Thinking, Text: string(e)})
		}
	})
	if cut := (*llm.CutError)(nil); errors.As(err, &cut) {
		if m := sessionMessage(&cut.Answer, model.Name()); m.Text != "" { // the user has seen this part
			m.Stop = fold.StopCut
			err = errors.Join(err, t.session.Append(context.WithoutCancel(ctx), session.Event{Message: m}))
		}
	}
	if err != nil {
		return nil, err
	}
	events := []session.Event{{Message: sessionMessage(answer, model.Name())}}
	if answer.Stop == llm.StopLength && hasCall(answer) {
		events = append(events, session.Event{Notice: &session.Notice{
			Text: "Your last message was cut by its limit of tokens in the middle of a call. The call was not made. Make it again in fewer words, or in parts."}})
	}
	if err := t.session.Append(ctx, events...); err != nil {
		return nil, err
	}
	t.emit(Event{Type: Usage, Usage: new(answer.Usage), Model: model.Name()})
	return answer, nil
}

// hasCall reports whether a response contains a call, even one that must not be
// made.
func hasCall(a *llm.Answer) bool {
	return slices.ContainsFunc(a.Message.Parts, func(p llm.Part) bool { _, call := p.(llm.Call); return call })
}

// sessionMessage converts a response to a session message, with the calls that
// may be made. It includes thinking only if the response is complete.
func sessionMessage(a *llm.Answer, model string) *session.Message {
	m := &session.Message{Role: llm.Assistant, Text: a.Message.Text(), Model: model, Stop: string(a.Stop), Usage: new(a.Usage)}
	seen := map[string]bool{}
	for i, c := range a.Calls() {
		if seen[c.ID] { // duplicate ID: one of the calls would get no result
			c.ID = fmt.Sprintf("%s_%d", c.ID, i+1)
		}
		seen[c.ID] = true
		m.Calls = append(m.Calls, c)
	}
	for _, p := range a.Message.Parts {
		if thought, ok := p.(llm.Thinking); ok && (a.Stop == llm.StopEnd || a.Stop == llm.StopTools || a.Stop == llm.StopPause) {
			m.Thinking = append(m.Thinking, thought)
		}
	}
	return m
}

// emitSkillEvents emits an event for each skill loaded or unloaded since it was
// last called.
func (t *turn) emitSkillEvents() {
	if t.onEvent == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, e := range t.session.Events(t.lastSeq) {
		t.lastSeq = e.Seq
		switch {
		case e.Loaded != nil:
			t.onEvent(Event{Type: SkillLoaded, Skill: e.Loaded.Skill.Name})
		case e.Unloaded != nil:
			t.onEvent(Event{Type: SkillUnloaded, Skill: e.Unloaded.Skill.Name, Reason: e.Unloaded.Reason})
		}
	}
}
