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

	mu        sync.Mutex // guards listeners, and seen of each
	listeners map[string]map[*listener]bool
}

// listener waits until a stream grows. It must be used by only one goroutine.
// Close it when done.
type listener struct {
	notifier     *notifier
	stream       string
	wakeup       chan struct{} // capacity 1
	subscription *bus.Subscription
	seen         int64 // number of the last event that its user has read
}

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

// wait returns when the stream may have events after seen, or may have been
// deleted.
func (l *listener) wait(ctx context.Context, seen int64) error {
	l.notifier.mu.Lock()
	l.seen = seen
	l.notifier.mu.Unlock()
	select {
	case <-l.wakeup:
	case <-l.subscription.Ready():
		l.subscription.Drain()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// wake wakes the listeners of a stream. The caller must hold b.mu.
func (b *notifier) wake(stream string) {
	for l := range b.listeners[stream] {
		select {
		case l.wakeup <- struct{}{}:
		default: // already woken
		}
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
					b.wake(stream)
					break
				}
			}
		}
		b.mu.Unlock()
	}
	return nil
}
