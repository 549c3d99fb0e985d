// Package bus notifies the nodes and parts of a hub that a stream has grown. A
// notification holds only the name of the stream and the number of its newest
// event. Subscribers read the events from the database. Start reading at [Bus];
// [New] returns a bus for one process and [Dial] a bus for several nodes.
//
// Notifications are hints. A newer one replaces an older one of the same stream,
// and any may be lost, for example when Redis is down. A subscriber therefore reads its
// streams after it subscribes, after each notification, and every few seconds
// while the bus is not healthy. Publishers never wait for subscribers, and the
// bus never carries the events themselves.
package bus

import (
	"sync"
)

// Notification says that a stream has grown.
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
	// newest event is seq. It does not wait and does not report delivery.
	Publish(stream string, seq int64)
	// Subscribe returns a subscription that collects notifications about
	// streams from now on. The caller closes it.
	Subscribe(streams ...string) *Subscription
	// Healthy returns nil, or the reason why notifications of other nodes may
	// not arrive.
	Healthy() error
	// Close stops the bus. Later calls of Publish and Subscribe have no effect.
	Close() error
}

// Local is the bus of one process. Create it with [New].
type Local struct {
	mu   sync.Mutex
	subs map[string]map[*Subscription]struct{} // by stream
}

var _ Bus = (*Local)(nil)

// New returns a bus for one process.
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

// notifyLoss tells all subscribers that notifications may have been lost.
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

// Subscription collects notifications about some streams until it is closed. It
// keeps one notification for each stream. It is for one reader, but any
// goroutine may call [Subscription.Close], and more than once.
type Subscription struct {
	bus   *Local
	ready chan struct{} // holds one value while something is pending

	mu      sync.Mutex // locked after bus.mu
	newest  map[string]int64
	pending map[string]int64
}

// Ready returns a channel that receives a value when [Subscription.Drain] has
// notifications to return. It receives one value for any number of them.
func (s *Subscription) Ready() <-chan struct{} { return s.ready }

// Drain returns the newest notification of each stream since the last call, in
// no particular order. The numbers of a stream always increase.
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

// Close ends the subscription. It does not close the channel of Ready.
func (s *Subscription) Close() { s.bus.removeSubscription(s) }

// add adds a notification unless it is older than the newest one of its stream.
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
