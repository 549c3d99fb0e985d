package chat

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/fold"
	"github.com/loadout-dev/loadout/session"
)

// stoppedError is the cancellation cause of a turn stopped by the user or the
// hub.
type stoppedError struct {
	reason  Reason
	text    string // shown to watchers
	toModel string // shown to the model as the result of calls that were not made
}

func (e *stoppedError) Error() string { return "turn was stopped" }

// errCancelled is the cancellation cause of a turn that the user cancelled.
var errCancelled = &stoppedError{reason: Cancelled, toModel: "The user cancelled the turn."}

// StopTurns stops the turns that run on this node in conversations for which
// match returns true, for example conversations with a disabled agent. The turns
// fail with the given reason. Waiting inputs are processed next; [Options.Setup]
// may refuse them.
func (e *Engine) StopTurns(match func(Conversation) bool, reason string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, t := range e.liveTurns {
		if match(t.conversation) {
			t.cancel(&stoppedError{Failed, reason, "The turn was ended: " + reason + "."})
		}
	}
}

// TurnStats returns the numbers of running and waiting turns on this node.
func (e *Engine) TurnStats() (running, waiting int) { return e.turns.Stats() }

// liveTurn is a running turn that can be cancelled.
type liveTurn struct {
	conversation Conversation
	cancel       context.CancelCauseFunc
}

// registerTurn registers a running turn for StopTurns until done is called.
func (e *Engine) registerTurn(c Conversation, cancel context.CancelCauseFunc) (done func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.liveTurns[c.ID] = liveTurn{c, cancel}
	return func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		delete(e.liveTurns, c.ID)
	}
}

// closeCalls adds a result to the transcript for each call that has none, so
// that no later turn makes the call.
func (w *worker) closeCalls(ctx context.Context, why string) error {
	var events []session.Event
	if w.active != nil {
		events = w.active.recent()
	} else {
		past, err := w.journal.readSnapshot(ctx)
		if err != nil {
			return err
		}
		events = past.Agent.Recent()
	}
	var results []*session.Event
	for _, c := range fold.PendingCalls(events) {
		text := why + " The call was not made."
		if c.Started {
			text = why + " The call was in progress. It may have had an effect."
		}
		results = append(results, &session.Event{Time: time.Now().UTC(),
			Result: &session.CallResult{Call: c.ID, Text: text, Error: true, Denied: !c.Started}})
	}
	if w.active == nil {
		return w.journal.Append(ctx, results...)
	}
	for _, r := range results {
		if err := w.active.session.Append(ctx, *r); err != nil {
			return err
		}
	}
	return nil
}
