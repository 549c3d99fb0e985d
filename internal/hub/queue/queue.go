// Package queue limits how many operations run at once and shares the slots
// fairly between users: users with waiting operations take turns, however many
// operations each of them has.
//
// A queue works within one process. It does not know what the operations do.
package queue

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// ErrFull says that the maximum number of operations is waiting.
var ErrFull = errors.New("too many operations waiting; try again later")

// Queue shares slots between users. It is safe for concurrent use.
type Queue struct {
	places, maxWaiting int // slots, and waiting operations at most

	mu      sync.Mutex // guards the fields below
	free    int
	room    int // how many more may wait
	users   map[string]*line
	waiting list.List // nonempty lines, the next one to serve first
}

// line holds the waiting operations of one user, oldest first.
type line struct {
	user    string
	calls   list.List // of chan struct{}, closed when a slot is granted
	element *list.Element
}

// New returns a queue with a number of slots and of waiting operations at most.
// It panics if places is less than 1.
func New(places, waiting int) *Queue {
	if places < 1 {
		panic("queue: no slots")
	}
	return &Queue{places: places, maxWaiting: max(waiting, 0), free: places, room: max(waiting, 0), users: map[string]*line{}}
}

// Stats returns the number of slots in use and of waiting operations.
func (q *Queue) Stats() (taken, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.places - q.free, q.maxWaiting - q.room
}

// Acquire waits for a slot and returns a function that releases it. Call the
// function at least once. Acquire fails at once with [ErrFull], or with the
// cause of ctx if ctx is done first.
func (q *Queue) Acquire(ctx context.Context, user string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	called, element, err := q.acquireOrEnqueue(user)
	if err != nil {
		return nil, err
	}
	select {
	case <-called:
	case <-ctx.Done():
		q.cancel(user, element, called)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(q.release), nil
}

// acquireOrEnqueue takes a free slot or joins the line of the user.
func (q *Queue) acquireOrEnqueue(user string) (chan struct{}, *list.Element, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	called := make(chan struct{})
	if q.free > 0 { // nobody waits
		q.free--
		close(called)
		return called, nil, nil
	}
	if q.room == 0 {
		return nil, nil, ErrFull
	}
	q.room--
	l := q.users[user]
	if l == nil {
		l = &line{user: user}
		l.element = q.waiting.PushBack(l)
		q.users[user] = l
	}
	return called, l.calls.PushBack(called), nil
}

// cancel leaves the line, or releases the slot that was granted meanwhile.
func (q *Queue) cancel(user string, element *list.Element, called chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-called:
		q.grantNext()
		return
	default:
	}
	l := q.users[user]
	l.calls.Remove(element)
	q.room++
	q.removeEmpty(l)
}

func (q *Queue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.grantNext()
}

// grantNext passes a released slot to the next user. The caller holds q.mu.
func (q *Queue) grantNext() {
	first := q.waiting.Front()
	if first == nil {
		q.free++
		return
	}
	l := first.Value.(*line)
	close(l.calls.Remove(l.calls.Front()).(chan struct{}))
	q.room++
	q.waiting.MoveToBack(first)
	q.removeEmpty(l)
}

// removeEmpty removes an empty line. The caller holds q.mu.
func (q *Queue) removeEmpty(l *line) {
	if l.calls.Len() == 0 {
		q.waiting.Remove(l.element)
		delete(q.users, l.user)
	}
}
