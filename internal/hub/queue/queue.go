// Package queue limits how many operations run at once and shares the slots
// fairly: users with waiting operations take turns, regardless of how many
// operations each of them has. Start reading at [Queue].
//
// A queue works within a single process.
package queue

import (
	"context"
	"errors"
	"sync"
)

// ErrFull is returned if too many operations are waiting.
var ErrFull = errors.New("too many queued operations; try again later")

// Queue shares slots between users. It is safe for concurrent use.
type Queue struct {
	slots, maxWaiting int // number of slots, and maximum number of waiting operations

	mu    sync.Mutex // guards the fields below
	free  int
	lanes []*lane
	next  int // index of the lane that is served next
}

// Options configures a [Queue]. Slots is required.
type Options struct {
	Slots   int
	Waiting int // maximum number of waiting operations in each lane
	// EachUser and EachGroup limit the waiting operations of a user, and of a group
	// of users, in each lane, so that they do not fill the lane.
	EachUser, EachGroup int
	Lanes               int // number of lanes; 0 means 1
}

// Caller identifies the operations that share a turn.
type Caller struct {
	User  string
	Group string // "" if the user is in no group
	// Lane is the index of the lane in which the operation waits. Lanes take turns,
	// so operations in one of them do not delay those in another for long.
	Lane int
}

// New returns a queue with the given number of slots, in which up to maxWaiting
// operations can wait. It panics if slots is less than 1.
func New(slots, maxWaiting int) *Queue {
	return NewWith(Options{Slots: slots, Waiting: maxWaiting, EachUser: maxWaiting, EachGroup: maxWaiting})
}

// NewWith returns a queue with the given options. It panics if o.Slots is less
// than 1.
func NewWith(o Options) *Queue {
	if o.Slots < 1 {
		panic("queue: no slots")
	}
	q := &Queue{slots: o.Slots, free: o.Slots}
	for range max(o.Lanes, 1) {
		q.maxWaiting += max(o.Waiting, 0)
		q.lanes = append(q.lanes, newLane(o))
	}
	return q
}

// Stats returns the number of slots in use and the number of waiting operations.
func (q *Queue) Stats() (taken, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	waiting = q.maxWaiting
	for _, l := range q.lanes {
		waiting -= l.room
	}
	return q.slots - q.free, waiting
}

// Acquire waits for a slot and returns a function that releases it. The caller
// must call release; further calls do nothing. Acquire fails with [ErrFull] if
// too many operations of the user or of all users are waiting, and with the
// cause of ctx if ctx is done first.
func (q *Queue) Acquire(ctx context.Context, user string) (release func(), err error) {
	return q.AcquireFor(ctx, Caller{User: user})
}

// AcquireFor is like [Queue.Acquire], but waits in the lane of a caller and also
// fails with [ErrFull] if too many operations of the caller's group are waiting.
func (q *Queue) AcquireFor(ctx context.Context, c Caller) (release func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	call, err := q.acquireOrEnqueue(c)
	if err != nil {
		return nil, err
	}
	select {
	case <-call.granted:
	case <-ctx.Done():
		q.cancel(call)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(q.release), nil
}

// acquireOrEnqueue takes a free slot or joins the user's queue.
func (q *Queue) acquireOrEnqueue(c Caller) (*call, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	one := &call{caller: c, granted: make(chan struct{})}
	if q.free > 0 { // no operation is waiting
		q.free--
		close(one.granted)
		return one, nil
	}
	return one, q.lanes[c.Lane].enqueue(one)
}

// cancel removes a waiting operation, or releases its slot if it has just been
// granted one.
func (q *Queue) cancel(c *call) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-c.granted:
		q.grantNext()
	default:
		q.lanes[c.caller.Lane].remove(c)
	}
}

func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.grantNext()
}

// grantNext gives a released slot to the next user of the next lane. The caller must
// hold q.mu.
func (q *Queue) grantNext() {
	for range q.lanes {
		l := q.lanes[q.next]
		q.next = (q.next + 1) % len(q.lanes)
		if c := l.pop(); c != nil {
			close(c.granted)
			return
		}
	}
	q.free++
}
