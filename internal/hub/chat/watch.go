package chat

import (
	"context"
	"errors"
	"iter"

	"github.com/loadout-dev/loadout/internal/approval"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Watch yields the events of a conversation after the given number, each once
// and in order, including events from other nodes. If after is 0, it yields all
// events. It runs until the consumer stops, ctx is done, the conversation is
// deleted or the database fails; in the last three cases it yields an error at
// the end. A caller that calls Watch again with the number of the last event
// that it received misses no events.
func (e *Engine) Watch(ctx context.Context, p account.Principal, id string, after int64) iter.Seq2[Event, error] {
	return e.watch(ctx, p, id, after, watchMode{follow: true})
}

// ReadEvents is like [Engine.Watch], but stops after the events that are already
// published. If asClient is set, it is like [Engine.WatchAsClient].
func (e *Engine) ReadEvents(ctx context.Context, p account.Principal, id string, after int64, asClient bool) iter.Seq2[Event, error] {
	return e.watch(ctx, p, id, after, watchMode{asClient: asClient})
}

// WatchAsClient is like [Engine.Watch] for a client that executes requests. An
// event with [Event.NeedsResponse] is a request that the client must answer with
// [Engine.Respond]. The principal must be allowed to answer requests.
func (e *Engine) WatchAsClient(ctx context.Context, p account.Principal, id string, after int64) iter.Seq2[Event, error] {
	return e.watch(ctx, p, id, after, watchMode{follow: true, asClient: true})
}

// watchMode holds the options of a watch call.
type watchMode struct {
	follow   bool // whether to wait for later events
	asClient bool // whether to receive requests to clients
}

func (e *Engine) watch(ctx context.Context, p account.Principal, id string, after int64, mode watchMode) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		_, err := e.authorize(ctx, p, account.SessionRead, id)
		if err == nil && mode.asClient {
			_, err = e.authorize(ctx, p, account.ApprovalAnswer, id)
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		after = max(after, 0)
		l := e.notifier.listen(eventStream(id), after)
		defer l.close()
		for read, woken := true, false; ; {
			var events []Event
			if read {
				events, err = e.readEventPage(ctx, id, after)
				if read = len(events) == eventPage; err == nil && len(events) == 0 && woken {
					_, err = e.db.Sessions.Get(ctx, id) // fails if it was deleted
				}
			} else if mode.follow {
				events, read, err = e.waitForEvents(ctx, l, after)
				woken = true
			} else {
				return
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, ev := range events {
				after = ev.Seq
				if mode.asClient && ev.Type == ApprovalRequested && ev.ApprovalRequest.Kind == approval.KindAction {
					ev.NeedsResponse, err = e.markDelivered(ctx, id, ev.ApprovalRequest.ID)
				}
				if !yield(ev, err) || err != nil {
					return
				}
			}
		}
	}
}

// waitForEvents is like [listener.wait], but also returns an error if the engine
// closes.
func (e *Engine) waitForEvents(ctx context.Context, l *listener, after int64) (events []Event, grown bool, err error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(e.ctx, func() { stop(ErrClosed) })()
	return l.wait(ctx, after)
}

// markDelivered records that a client has received a request. It reports whether
// the request is still pending.
func (e *Engine) markDelivered(ctx context.Context, id, request string) (bool, error) {
	kept, err := e.db.ApprovalRequests.Get(ctx, request)
	if errors.Is(err, store.ErrNotFound) || err == nil && !kept.Resolved.IsZero() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = e.update(ctx, id, func(c *conversationTx) error { return c.notifyTurn(ctx, seenNote, request) })
	if errors.Is(err, ErrQueueFull) {
		err = nil // the inbox is full
	}
	return err == nil, err
}
