// Package queue lets a bounded number of things run at once, and shares what there is
// between users: where many wait, they have a turn one after the other, however much
// one of them wants.
//
// It is of one process. What runs, and for how long, it does not know.
package queue

import (
	"container/list"
	"context"
	"errors"
	"sync"
)

// ErrFull says that as many wait as may.
var ErrFull = errors.New("too much waits for its turn; try again later")

// Queue shares places between users. It is safe for concurrent use.
type Queue struct {
	places, most int // that there are, and for how many more that wait

	mu      sync.Mutex // guards what follows
	free    int
	room    int // for how many more that wait
	users   map[string]*line
	waiting list.List // the lines with somebody in them, whose turn is next first
}

// line is what one user waits for, the first first.
type line struct {
	user    string
	calls   list.List // of chan struct{}, closed with a place
	element *list.Element
}

// New returns a queue for places that are taken at once, with room for waiting ones
// at most. It panics where there is no place, as nothing would ever run.
func New(places, waiting int) *Queue {
	if places < 1 {
		panic("queue: no places")
	}
	return &Queue{places: places, most: max(waiting, 0), free: places, room: max(waiting, 0), users: map[string]*line{}}
}

// State is how many places are taken, and how many wait for one.
func (q *Queue) State() (taken, waiting int) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.places - q.free, q.most - q.room
}

// Enter waits for a place, and returns how to leave it, which has to be called and may
// be called twice. The error is [ErrFull] at once, or the cause of ctx when that
// ended first.
func (q *Queue) Enter(ctx context.Context, user string) (leave func(), err error) {
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	called, element, err := q.wait(user)
	if err != nil {
		return nil, err
	}
	select {
	case <-called:
	case <-ctx.Done():
		q.giveUp(user, element, called)
		return nil, context.Cause(ctx)
	}
	return sync.OnceFunc(q.leave), nil
}

// wait takes a place, or stands in line for one.
func (q *Queue) wait(user string) (chan struct{}, *list.Element, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	called := make(chan struct{})
	if q.free > 0 { // then nobody waits
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

// giveUp leaves the line, or the place that was given meanwhile.
func (q *Queue) giveUp(user string, element *list.Element, called chan struct{}) {
	q.mu.Lock()
	defer q.mu.Unlock()
	select {
	case <-called:
		q.next()
		return
	default:
	}
	l := q.users[user]
	l.calls.Remove(element)
	q.room++
	q.tidy(l)
}

func (q *Queue) leave() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.next()
}

// next gives a place that became free to the user whose turn it is. q.mu is held.
func (q *Queue) next() {
	first := q.waiting.Front()
	if first == nil {
		q.free++
		return
	}
	l := first.Value.(*line)
	close(l.calls.Remove(l.calls.Front()).(chan struct{}))
	q.room++
	q.waiting.MoveToBack(first)
	q.tidy(l)
}

// tidy forgets a line with nobody in it. q.mu is held.
func (q *Queue) tidy(l *line) {
	if l.calls.Len() == 0 {
		q.waiting.Remove(l.element)
		delete(q.users, l.user)
	}
}
