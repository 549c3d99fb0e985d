// Package bus notifies the nodes and parts of a hub that a stream has grown. A
// notification holds only the name of the stream and the number of its newest
// event. Subscribers read the events from the database. Start reading at [Bus];
// [New] returns a bus for one process and [Dial] a bus for several nodes.
//
// Notifications are hints. A newer notification replaces an older one for the
// same stream, and any notification may be lost, for example when Redis is
// down. A subscriber therefore reads its streams after it subscribes, after
// each notification, and every few seconds while the bus is not healthy.
// Publishers never wait for subscribers, and the bus never carries the events
// themselves.
package bus

import (
	"sync"
)

// Notification reports that a stream has grown.
type Notification struct {
	Stream string
	// Seq is the number of the newest known event. 0 means that notifications
	// may have been lost and that the stream may have grown.
	Seq int64
}

// Bus delivers notifications from publishers to subscribers. Implementations
// are safe for concurrent use.
type Bus interface {
	// Publish notifies the subscribers of a stream, on all nodes, that its
	// newest event is seq. It neither waits for delivery nor reports it.
	Publish(stream string, seq int64)
	// Subscribe returns a subscription that collects later notifications about
	// streams. The caller must close it.
	Subscribe(streams ...string) *Subscription
	// Healthy returns nil, or the reason why notifications from other nodes may
	// not arrive.
	Healthy() error
	// Close stops the bus. Later calls to Publish and Subscribe have no effect.
	Close() error
}

// Local is a bus within one process. Create it with [New].
type Local struct {
	mu   sync.Mutex
	subs map[string]map[*Subscription]struct{} // by stream
}

var _ Bus = (*Local)(nil)

// New returns a bus within one process.
func New() *Local { return &Local{subs: map[string]map[*Subscription]struct{}{}} }

// Publish implements [Bus].
func (l *Local) Publish(stream string, seq int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for s := range l.subs[stream] {
		s.add(stream, seq)
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

// Healthy implements [Bus]. It always returns nil.
func (l *Local) Healthy() error { return nil }

// Close implements [Bus].
func (l *Local) Close() error { return nil }

// notifyLoss notifies all subscribers that notifications may have been lost.
func (l *Local) notifyLoss() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for stream, subs := range l.subs {
		for s := range subs {
			s.add(stream, 0)
		}
	}
}

func (l *Local) removeSubscription(s *Subscription) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for stream := range s.newest {
		delete(l.subs[stream], s)
		if len(l.subs[stream]) == 0 {
			delete(l.subs, stream)
		}
	}
}

// Subscription collects notifications about a set of streams until it is
// closed. It retains one notification per stream. Only one goroutine may read
// it, but any goroutine may call [Subscription.Close], even more than once.
type Subscription struct {
	bus   *Local
	ready chan struct{} // holds one value while notifications are pending

	mu      sync.Mutex // locked after bus.mu
	newest  map[string]int64
	pending map[string]int64
}

// Ready returns a channel that receives a value when [Subscription.Drain] has
// notifications to return. A single value may stand for several notifications.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Drain returns the newest notification for each stream since the last call, in
// no particular order. The sequence numbers of a stream only increase, except
// for 0.
func (s *Subscription) Drain() []Notification {
	s.mu.Lock()
	defer s.mu.Unlock()
	notes := make([]Notification, 0, len(s.pending))
	for stream, seq := range s.pending {
		notes = append(notes, Notification{stream, seq})
	}
	clear(s.pending)
	return notes
}

// Close ends the subscription and stops collecting notifications. It does not
// close the channel returned by Ready.
func (s *Subscription) Close() { s.bus.removeSubscription(s) }

// add adds a notification unless it is older than the newest one for its
// stream.
func (s *Subscription) add(stream string, seq int64) {
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
