// Package bus tells the nodes of a hub, and the parts of one, that a stream has grown:
// nothing but its name and the number of its newest event. What happened is read from
// where it is kept.
//
// A note is a hint. Of several about one stream only the newest counts, and one may be
// lost, as when Redis is away: who waits for a stream reads it after subscribing, when
// it is told of it, and every few seconds where the bus is not healthy. Then nothing
// depends on what was lost. Nobody who publishes ever waits for anybody.
package bus

import (
	"sync"
)

// Note says that a stream has grown.
type Note struct {
	Stream string
	// Seq is the number of its newest event, as far as is known. 0 says that notes may
	// have been lost: the stream has grown or not.
	Seq int64
}

// Bus brings notes from those who publish to those who subscribe. Implementations are
// safe for concurrent use.
type Bus interface {
	// Publish tells those who subscribe to a stream, on all nodes, that it has grown to
	// a number. It does not wait, and does not say whether anybody was told.
	Publish(stream string, seq int64)
	// Subscribe begins to take down notes about streams before it returns. Who
	// subscribes closes the subscription.
	Subscribe(streams ...string) *Subscription
	// Healthy says why notes of other nodes may not arrive at this moment, nil where
	// they do.
	Healthy() error
	// Close ends the bus and what it started. What is published or subscribed to then
	// is ignored.
	Close() error
}

// Local is the bus of one process. Make one with [New].
type Local struct {
	mu   sync.Mutex
	subs map[string]map[*Subscription]struct{} // by stream
}

var _ Bus = (*Local)(nil)

// New returns the bus of one process.
func New() *Local { return &Local{subs: map[string]map[*Subscription]struct{}{}} }

// Publish implements [Bus].
func (l *Local) Publish(stream string, seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.subs[stream] {
		s.note(stream, seq)
	}
}

// Subscribe implements [Bus].
func (l *Local) Subscribe(streams ...string) *Subscription {
	s := &Subscription{
		bus:     l,
		ready:   make(chan struct{}, 1),
		newest:  make(map[string]int64, len(streams)),
		pending: map[string]int64{},
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, stream := range streams {
		s.newest[stream] = 0
		if l.subs[stream] == nil {
			l.subs[stream] = map[*Subscription]struct{}{}
		}
		l.subs[stream][s] = struct{}{}
	}
	return s
}

// Healthy implements [Bus]: within a process notes always arrive.
func (l *Local) Healthy() error { return nil }

// Close implements [Bus].
func (l *Local) Close() error { return nil }

// doubt tells all who subscribe that notes may have been lost.
func (l *Local) doubt() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for stream, subs := range l.subs {
		for s := range subs {
			s.note(stream, 0)
		}
	}
}

// remove ends a subscription.
func (l *Local) remove(s *Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for stream := range s.newest {
		delete(l.subs[stream], s)
		if len(l.subs[stream]) == 0 {
			delete(l.subs, stream)
		}
	}
}

// Subscription takes down notes about some streams until it is closed. It keeps one
// note a stream, however slow its reader is. It is for one reader; [Subscription.Close]
// may be called by others, any number of times.
type Subscription struct {
	bus   *Local
	ready chan struct{} // has one in it while something is pending

	mu      sync.Mutex // taken after that of the bus
	newest  map[string]int64
	pending map[string]int64
}

// Ready receives when there is something to [Subscription.Take], and once for any
// number of notes.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Take returns the notes that came since it was last called, the newest of each
// stream, in no order. A number that was returned, or a smaller one, does not come
// again.
func (s *Subscription) Take() []Note {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := make([]Note, 0, len(s.pending))
	for stream, seq := range s.pending {
		notes = append(notes, Note{stream, seq})
	}
	clear(s.pending)
	return notes
}

// Close ends the subscription. Ready does not receive because of it.
func (s *Subscription) Close() { s.bus.remove(s) }

// note takes down a note, unless as much was known.
func (s *Subscription) note(stream string, seq int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if seq != 0 && seq <= s.newest[stream] {
		return
	}
	s.newest[stream] = max(seq, s.newest[stream])
	s.pending[stream] = max(seq, s.pending[stream])
	select {
	case s.ready <- struct{}{}:
	default:
	}
}
