package chat

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/loadout-dev/loadout/internal/bus"
	"github.com/loadout-dev/loadout/internal/store"
)

// notifier wakes the listeners on this node when their streams grow. The bus
// wakes them immediately. To compensate for lost notifications, poll checks all
// streams with a single query.
type notifier struct {
	db  *store.DB
	bus bus.Bus

	mu        sync.Mutex // guards listeners and some fields of each listener
	listeners map[string]map[*listener]bool
}

// listener waits until a stream grows. It must be used by only one goroutine.
// Close it when done.
type listener struct {
	notifier     *notifier
	stream       string
	wakeup       chan struct{} // capacity 1
	subscription *bus.Subscription

	// The following fields are guarded by notifier.mu.
	seen   int64   // number of the last event that its goroutine has read
	fresh  []Event // consecutive events that this node has added to the stream
	behind bool    // whether the stream may have more events than fresh, or was deleted
}

// maxFresh is the maximum number of events that wait for a slow listener. The
// listener reads further events from the database.
const maxFresh = 32

func (b *notifier) listen(stream string, seen int64) *listener {
	l := &listener{notifier: b, stream: stream, wakeup: make(chan struct{}, 1), subscription: b.bus.Subscribe(stream), seen: seen}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.listeners[stream] == nil {
		b.listeners[stream] = map[*listener]bool{}
	}
	b.listeners[stream][l] = true
	return l
}

func (l *listener) close() {
	l.subscription.Close()
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	delete(l.notifier.listeners[l.stream], l)
	if len(l.notifier.listeners[l.stream]) == 0 {
		delete(l.notifier.listeners, l.stream)
	}
}

// wait waits for events with numbers greater than seen, and returns those that
// this node has added to the stream. If grown is set, the stream may have further
// events in the database, or may have been deleted.
func (l *listener) wait(ctx context.Context, seen int64) (fresh []Event, grown bool, err error) {
	for {
		fresh, grown = l.take(seen)
		for _, note := range l.subscription.Drain() {
			grown = grown || note.Seq == 0 || note.Seq > seen+int64(len(fresh))
		}
		if len(fresh) > 0 || grown {
			return fresh, grown, nil
		}
		select {
		case <-l.wakeup:
		case <-l.subscription.Ready():
		case <-ctx.Done():
			return nil, false, context.Cause(ctx)
		}
	}
}

// take returns the events that this node has added to the stream after event
// number seen, up to the first gap in the numbers.
func (l *listener) take(seen int64) (fresh []Event, grown bool) {
	l.notifier.mu.Lock()
	defer l.notifier.mu.Unlock()
	fresh, grown = l.fresh, l.behind
	l.seen, l.fresh, l.behind = seen, nil, false
	for len(fresh) > 0 && fresh[0].Seq <= seen {
		fresh = fresh[1:]
	}
	if len(fresh) > 0 && fresh[0].Seq != seen+1 {
		return nil, true
	}
	return fresh, grown
}

// hasListeners reports whether a stream has listeners on this node.
func (b *notifier) hasListeners(stream string) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.listeners[stream]) > 0
}

// deliver passes events that this node has added to a stream to the stream's
// listeners.
func (b *notifier) deliver(stream string, events []Event) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for l := range b.listeners[stream] {
		if n := len(l.fresh); n+len(events) > maxFresh || n > 0 && l.fresh[n-1].Seq+1 != events[0].Seq {
			l.fresh, l.behind = nil, true
		} else {
			l.fresh = append(l.fresh, events...)
		}
		l.wake()
	}
}

// wake makes [listener.wait] look for events. The caller must hold notifier.mu.
func (l *listener) wake() {
	select {
	case l.wakeup <- struct{}{}:
	default: // already woken
	}
}

// poll wakes the listeners whose streams have new events or were deleted.
func (b *notifier) poll(ctx context.Context) error {
	b.mu.Lock()
	streams := slices.Sorted(maps.Keys(b.listeners))
	b.mu.Unlock()
	for some := range slices.Chunk(streams, store.MaxRead) {
		ends, err := b.db.Events.LastOfEach(ctx, some)
		if err != nil {
			return fmt.Errorf("poll streams: %w", err)
		}
		b.mu.Lock()
		for _, stream := range some {
			for l := range b.listeners[stream] {
				if ends[stream] > l.seen || ends[stream] == 0 && l.seen > 0 { // deleted
					l.behind = true
					l.wake()
				}
			}
		}
		b.mu.Unlock()
	}
	return nil
}
