package chat

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/session"
)

// stoppedError is why a turn ends that somebody ended.
type stoppedError struct {
	reason Reason
	text   string // for who watches
	told   string // to the model, of calls that were not made
}

func (e *stoppedError) Error() string { return "the turn was stopped" }

// errCancelled is why a turn ends that its person cancelled.
var errCancelled = &stoppedError{reason: Cancelled, told: "The person cancelled the turn."}

// Stop ends the turns under way on this node for which which says so, as those of an
// agent that was switched off: they have failed, for the reason that is given. What
// waits behind them begins, and is for Setup to refuse.
func (e *Engine) Stop(which func(Conversation) bool, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.live {
		if which(t.conversation) {
			t.cancel(&stoppedError{Failed, reason, "The turn was ended: " + reason + "."})
		}
	}
}

// Turns is how many turns are under way on this node, and how many wait for a place.
func (e *Engine) Turns() (running, waiting int) { return e.turns.State() }

// liveTurn is a turn under way.
type liveTurn struct {
	conversation Conversation
	cancel       context.CancelCauseFunc
}

// underWay notes a turn until done is called.
func (e *Engine) underWay(c Conversation, cancel context.CancelCauseFunc) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.live[c.ID] = liveTurn{c, cancel}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.live, c.ID)
	}
}

// closeCalls says of calls that have no result what came of them, so that no later turn
// makes them.
func (w *worker) closeCalls(ctx context.Context, why string) error {
	var events []session.Event
	if w.talk != nil {
		events = w.talk.session.Events(0)
	} else {
		var err error
		if events, err = w.journal.Read(ctx, 0); err != nil {
			return err
		}
	}
	var results []*session.Event
	for _, c := range openCalls(events) {
		text := why + " The call was not made."
		if c.started {
			text = why + " The call was under way then. It is not known whether it had an effect."
		}
		results = append(results, &session.Event{Time: time.Now().UTC(), Type: session.TypeResult,
			Result: &session.Returned{Call: c.id, Text: text, Error: true, Denied: !c.started}})
	}
	if w.talk == nil {
		return w.journal.Append(ctx, results...)
	}
	for _, r := range results {
		if err := w.talk.session.Append(ctx, *r); err != nil {
			return err
		}
	}
	return nil
}

type openCall struct {
	id      string
	started bool
}

// openCalls are the calls of the last message of a model that have no result.
func openCalls(events []session.Event) []openCall {
	var out []openCall
	for _, e := range events {
		switch {
		case e.Compacted != nil:
			out = nil
		case e.Message != nil && e.Message.Role == session.RoleAssistant:
			out = nil
			for _, c := range e.Message.Calls {
				out = append(out, openCall{id: c.ID})
			}
		case e.Started != nil:
			for i := range out {
				out[i].started = out[i].started || out[i].id == e.Started.Call
			}
		case e.Result != nil:
			for i := range out {
				if out[i].id == e.Result.Call {
					out = append(out[:i:i], out[i+1:]...)
					break
				}
			}
		}
	}
	return out
}
