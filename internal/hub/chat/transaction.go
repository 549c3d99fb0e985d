package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
)

// conversationTx is a transaction that changes a conversation. Events are appended
// to its streams together at the end of the transaction, to save SQL statements.
type conversationTx struct {
	*store.Tx
	id       string
	quotas   quota.Quotas
	titles   bool             // whether a message gives a title to a conversation without one
	left     *quota.Allowance // remaining storage of the owner; nil until bytes are reserved
	queued   []store.NewEvents
	written  map[string][]store.Event // events that flush has appended, by stream
	appended map[string]int64         // last numbers of the inbox and event stream, if the transaction appends to them
	ends     *streamEnds              // last event numbers known to this node; nil after a conflict
}

// errLeaseLost is returned if this node no longer holds the conversation's lease.
var errLeaseLost = errors.New("conversation was taken over by another node")

// maxCommitAttempts is the maximum number of attempts after conflicting appends
// to a stream.
const maxCommitAttempts = 20

// update calls f in a transaction and then wakes the listeners of the streams
// that f appended to. If another writer appended to a stream at the same time, it
// calls f again, so f must have no effects outside the transaction.
func (e *Engine) update(ctx context.Context, id string, f func(c *conversationTx) error) error {
	for try := 1; ; try++ {
		c := &conversationTx{id: id, quotas: e.opts.Quotas, titles: e.opts.Titles != nil}
		if try == 1 {
			c.ends = &e.ends
		}
		err := e.db.Tx(ctx, func(tx *store.Tx) error {
			c.Tx, c.left, c.queued, c.written, c.appended = tx, nil, nil, map[string][]store.Event{}, map[string]int64{}
			if err := f(c); err != nil {
				return err
			}
			if err := c.flush(ctx); err != nil {
				return err
			}
			return c.indexSteps(ctx)
		})
		if errors.Is(err, store.ErrConflict) && try < maxCommitAttempts {
			continue
		}
		if err != nil {
			return err
		}
		e.deliver(id, c.written)
		for stream, seq := range c.appended {
			e.ends.set(stream, seq)
			e.opts.Bus.Publish(stream, seq)
		}
		return nil
	}
}

// deliver passes the events of a transaction to this node's watchers, which then
// need not read the events from the database.
func (e *Engine) deliver(id string, written map[string][]store.Event) {
	stream := eventStream(id)
	rows := written[stream]
	if len(rows) == 0 || !e.notifier.hasListeners(stream) {
		return
	}
	events, err := decodeEvents(id, rows, func(after int64, _ int) ([]store.Event, error) {
		steps := written[id]
		if len(steps) > 0 {
			steps = steps[min(max(after+1-steps[0].Seq, 0), int64(len(steps))):]
		}
		return steps, nil
	})
	if err == nil { // otherwise they read the events from the database
		e.notifier.deliver(stream, events)
	}
}

// appendEvents appends events to a stream that may have other writers. It returns
// the number of the last event.
func (c *conversationTx) appendEvents(ctx context.Context, stream string, rows ...store.Event) (int64, error) {
	last, ok := c.appended[stream]
	if !ok && c.ends != nil {
		last, ok = c.ends.get(stream)
	}
	if !ok {
		var err error
		if last, err = c.Events.Last(ctx, stream); err != nil {
			return 0, err
		}
	}
	c.queueEvents(stream, last, rows)
	last += int64(len(rows))
	c.appended[stream] = last
	return last, nil
}

// queueEvents queues events for flush. after is the number of the last event in
// the stream, including queued ones.
func (c *conversationTx) queueEvents(stream string, after int64, rows []store.Event) {
	if i := slices.IndexFunc(c.queued, func(q store.NewEvents) bool { return q.Stream == stream }); i >= 0 {
		c.queued[i].Events = append(c.queued[i].Events, rows...)
		return
	}
	c.queued = append(c.queued, store.NewEvents{Stream: stream, After: after, Events: slices.Clip(rows)})
}

// flush appends the queued events. It returns errLeaseLost if another node
// appended to the transcript.
func (c *conversationTx) flush(ctx context.Context) error {
	for _, q := range c.queued {
		if q.Stream != c.id || c.ends != nil {
			continue
		}
		switch last, err := c.Events.Last(ctx, q.Stream); { // find the cause of the conflict
		case err != nil:
			return err
		case last != q.After:
			return errLeaseLost
		}
	}
	for len(c.queued) > 0 {
		var some []store.NewEvents
		for room := store.MaxAppend; room > 0 && len(c.queued) > 0; {
			q := &c.queued[0]
			n := min(room, len(q.Events))
			some = append(some, store.NewEvents{Stream: q.Stream, After: q.After, Events: q.Events[:n]})
			q.After, q.Events, room = q.After+int64(n), q.Events[n:], room-n
			if len(q.Events) == 0 {
				c.queued = c.queued[1:]
			}
		}
		if err := c.Events.AppendAll(ctx, some...); err != nil {
			return err
		}
		for _, n := range some {
			for i, row := range n.Events {
				row.Seq = n.After + int64(i) + 1
				c.written[n.Stream] = append(c.written[n.Stream], row)
			}
		}
	}
	return nil
}

// publish appends events to the conversation's event stream.
func (c *conversationTx) publish(ctx context.Context, events ...eventRow) error {
	if len(events) == 0 {
		return nil
	}
	rows := make([]store.Event, len(events))
	for i, r := range events {
		data, err := json.Marshal(r)
		if err != nil {
			return fmt.Errorf("publish events: %w", err)
		}
		rows[i] = store.Event{Kind: string(r.Type), Data: data}
	}
	_, err := c.appendEvents(ctx, eventStream(c.id), rows...)
	return err
}

// streamEnds holds the numbers of the last events of streams, as far as this node
// knows. Other nodes append too, so a number may be too small; the transaction that
// uses it then conflicts. The zero value is empty. It is safe for concurrent use.
type streamEnds struct {
	mu   sync.Mutex
	seqs map[string]int64
}

// maxStreamEnds is the maximum number of streams in streamEnds.
const maxStreamEnds = 20_000

func (s *streamEnds) get(stream string) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	seq, ok := s.seqs[stream]
	return seq, ok
}

// set records the last event of a stream. If seq is [math.MaxInt64], the stream
// was deleted.
func (s *streamEnds) set(stream string, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.seqs) >= maxStreamEnds {
		clear(s.seqs)
	}
	switch {
	case seq == math.MaxInt64:
		delete(s.seqs, stream)
	case s.seqs == nil:
		s.seqs = map[string]int64{stream: seq}
	default:
		s.seqs[stream] = max(s.seqs[stream], seq)
	}
}
