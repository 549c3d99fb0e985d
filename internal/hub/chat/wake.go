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

// bell wakes those of this node who wait for a stream to grow: when the bus says so,
// and, as it may lose a word, when the bell looks, for all of them with one question.
type bell struct {
	db  *store.DB
	bus bus.Bus

	mu      sync.Mutex // guards what follows, and the seen of listeners
	waiting map[string]map[*listener]bool
}

// listener waits for one stream. It is for one goroutine; close it when done.
type listener struct {
	bell   *bell
	stream string
	rung   chan struct{} // holds one
	notes  *bus.Subscription
	seen   int64 // what its owner knows of
}

func (b *bell) listen(stream string, seen int64) *listener {
	l := &listener{bell: b, stream: stream, rung: make(chan struct{}, 1), notes: b.bus.Subscribe(stream), seen: seen}
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.waiting[stream] == nil {
		b.waiting[stream] = map[*listener]bool{}
	}
	b.waiting[stream][l] = true
	return l
}

func (l *listener) close() {
	l.notes.Close()
	l.bell.mu.Lock()
	defer l.bell.mu.Unlock()
	delete(l.bell.waiting[l.stream], l)
	if len(l.bell.waiting[l.stream]) == 0 {
		delete(l.bell.waiting, l.stream)
	}
}

// wait returns when the stream may have more than its owner has seen, or be gone.
func (l *listener) wait(ctx context.Context, seen int64) error {
	l.bell.mu.Lock()
	l.seen = seen
	l.bell.mu.Unlock()
	select {
	case <-l.rung:
	case <-l.notes.Ready():
		l.notes.Take()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}

// wake is for b.mu held.
func (b *bell) wake(stream string) {
	for l := range b.waiting[stream] {
		select {
		case l.rung <- struct{}{}:
		default: // it is going to look
		}
	}
}

// look finds what nobody told of.
func (b *bell) look(ctx context.Context) error {
	b.mu.Lock()
	streams := slices.Sorted(maps.Keys(b.waiting))
	b.mu.Unlock()
	for some := range slices.Chunk(streams, store.MaxRead) {
		ends, err := b.db.Events.Lasts(ctx, some)
		if err != nil {
			return fmt.Errorf("look for what is new: %w", err)
		}
		b.mu.Lock()
		for _, stream := range some {
			for l := range b.waiting[stream] {
				if ends[stream] > l.seen || ends[stream] == 0 && l.seen > 0 { // it is gone
					b.wake(stream)
					break
				}
			}
		}
		b.mu.Unlock()
	}
	return nil
}
