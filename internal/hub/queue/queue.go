// Package queue limits how many operations run at once and shares the slots
// fairly: users with waiting operations take turns, regardless of how many
// operations each of them has. Start reading at [Queue].
//
// A queue works within a single process.
package queue

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// ErrFull is returned if too many operations are waiting.
var ErrFull = errors.New("too many queued operations; try again later")

// Queue shares slots between users. It is safe for concurrent use.
type Queue struct {
	places, maxWaiting int // number of slots, and maximum number of waiting operations
	each               int // maximum number of waiting operations of a user

	mu      sync.Mutex // guards the fields below
	free    int
	room    int // number of further operations that may wait
	users   map[string]*userQueue
	waiting list.List // user queues with waiting operations; the first one is served next
}

// userQueue holds a user's waiting operations, oldest first.
type userQueue struct {
	user    string
	calls   list.List // of chan struct{}, closed when a slot is granted
	element *list.Element
}

// New returns a queue with places slots and up to waiting waiting operations. It
// panics if places is less than 1.
func New(places, waiting int) *Queue { return NewBounded(places, waiting, waiting) }

// NewBounded is like [New], but each user has at most each waiting operations, so
// that one user cannot take the room of all.
func NewBounded(places, waiting, each int) *Queue {
	if places < 1 {
		panic("queue: no slots")
	}
	return &Queue{places: places, maxWaiting: max(waiting, 0), each: each, free: places, room: max(waiting, 0), users: map[string]*userQueue{}}
}

// Stats returns the number of slots in use and the number of waiting operations.
func (q *Queue) Stats() (taken, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.places - q.free, q.maxWaiting - q.room
}

// Acquire waits for a slot and returns a function that releases it. The caller
// must call leave; further calls to leave do nothing. Acquire fails with
// [ErrFull] if too many operations of the user or of all users are waiting, and with the cause of ctx if ctx
// is done first.
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

// acquireOrEnqueue takes a free slot or joins the user's queue.
func (q *Queue) acquireOrEnqueue(user string) (chan struct{}, *list.Element, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	called := make(chan struct{})
	if q.free > 0 { // no operation is waiting
		q.free--
		close(called)
		return called, nil, nil
	}
	l := q.users[user]
	if q.room == 0 || q.each == 0 || l != nil && l.calls.Len() >= q.each {
		return nil, nil, ErrFull
	}
	q.room--
	if l == nil {
		l = &userQueue{user: user}
		l.element = q.waiting.PushBack(l)
		q.users[user] = l
	}
	return called, l.calls.PushBack(called), nil
}

// cancel removes a waiting operation, or releases its slot if it has just been
// granted one.
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

// grantNext gives a released slot to the next user. The caller must hold q.mu.
func (q *Queue) grantNext() {
	first := q.waiting.Front()
	if first == nil {
		q.free++
		return
	}
	l := first.Value.(*userQueue)
	close(l.calls.Remove(l.calls.Front()).(chan struct{}))
	q.room++
	q.waiting.MoveToBack(first)
	q.removeEmpty(l)
}

// removeEmpty removes a user queue that has no waiting operations. The caller
// must hold q.mu.
func (q *Queue) removeEmpty(l *userQueue) {
	if l.calls.Len() == 0 {
		q.waiting.Remove(l.element)
		delete(q.users, l.user)
	}
}
