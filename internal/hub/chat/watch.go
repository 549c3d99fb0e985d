package chat

import (
	"context"
	"errors"
	"iter"

	"github.com/loadout-dev/loadout/ask"
	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Watch yields what is told of a conversation after a number, 0 for all, on whatever
// node it happens: each event once and in order. It goes on until its consumer stops,
// ctx ends, the conversation is gone, or the database fails; the last value then has
// the error. Who comes back with the number of the last event that it got misses
// nothing.
func (e *Engine) Watch(ctx context.Context, p account.Principal, id string, after int64) iter.Seq2[Event, error] {
	return e.watch(ctx, p, id, after, watching{stays: true})
}

// Told is [Engine.Watch] of who wants what was told so far, and ends there.
func (e *Engine) Told(ctx context.Context, p account.Principal, id string, after int64) iter.Seq2[Event, error] {
	return e.watch(ctx, p, id, after, watching{})
}

// Attend is [Engine.Watch] of a client that carries out requests: one that it was given
// waits for its [Engine.Respond], and is not said to have found nobody. Such an event is
// [Event.Wanted]. Who attends has to be one who may answer.
func (e *Engine) Attend(ctx context.Context, p account.Principal, id string, after int64) iter.Seq2[Event, error] {
	return e.watch(ctx, p, id, after, watching{stays: true, acts: true})
}

// watching is how a conversation is watched.
type watching struct {
	stays bool // for what is told later
	acts  bool // carries out requests
}

func (e *Engine) watch(ctx context.Context, p account.Principal, id string, after int64, how watching) iter.Seq2[Event, error] {
	return func(yield func(Event, error) bool) {
		_, err := e.may(ctx, p, account.SessionRead, id)
		if err == nil && how.acts {
			_, err = e.may(ctx, p, account.AskAnswer, id)
		}
		if err != nil {
			yield(Event{}, err)
			return
		}
		after = max(after, 0)
		l := e.bell.listen(toldOf(id), after)
		defer l.close()
		woken := false
		for {
			events, err := e.readTold(ctx, id, after)
			if err == nil && len(events) == 0 && woken {
				_, err = e.db.Sessions.Get(ctx, id) // it may be gone
			}
			if err != nil {
				yield(Event{}, err)
				return
			}
			for _, ev := range events {
				after = ev.Seq
				if how.acts && ev.Type == Asked && ev.Ask.Kind == ask.Action {
					ev.Wanted, err = e.attended(ctx, id, ev.Ask.ID)
				}
				if !yield(ev, err) || err != nil {
					return
				}
			}
			if woken = len(events) == 0; !woken {
				continue
			}
			if !how.stays {
				return
			}
			if err := e.await(ctx, l, after); err != nil {
				yield(Event{}, err)
				return
			}
		}
	}
}

// await waits for more of a conversation, as long as the node goes on.
func (e *Engine) await(ctx context.Context, l *listener, after int64) error {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	defer context.AfterFunc(e.ctx, func() { stop(ErrClosed) })()
	return l.wait(ctx, after)
}

// attended notes that a client was given a request, and reports whether it still waits.
func (e *Engine) attended(ctx context.Context, id, request string) (bool, error) {
	kept, err := e.db.Asks.Get(ctx, request)
	if errors.Is(err, store.ErrNotFound) || err == nil && !kept.Settled.IsZero() {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	err = e.change(ctx, id, func(c *change) error { return c.noteTo(ctx, seenNote, request) })
	if errors.Is(err, ErrWaiting) {
		err = nil // others have it, or nobody will
	}
	return err == nil, err
}
