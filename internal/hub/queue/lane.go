package queue

import "container/list"

// lane holds waiting operations. Users take turns, and the operations of a user stay
// in order. The queue's mutex guards it.
type lane struct {
	room                int // number of further operations that may wait
	eachUser, eachGroup int // maximum numbers of waiting operations

	users   map[string]*userQueue
	groups  map[string]int // number of waiting operations, by group
	waiting list.List      // user queues with waiting operations; the first one is served next
}

// userQueue holds a user's waiting operations, oldest first.
type userQueue struct {
	user    string
	calls   list.List // holds *call, oldest first
	element *list.Element
}

// call is an operation that is waiting for a slot.
type call struct {
	caller  Caller
	granted chan struct{} // closed when a slot is granted
	element *list.Element // element in the user's queue
}

func newLane(o Options) *lane {
	return &lane{room: max(o.Waiting, 0), eachUser: o.EachUser, eachGroup: o.EachGroup, users: map[string]*userQueue{}, groups: map[string]int{}}
}

// enqueue adds a waiting operation. It fails with [ErrFull] if a limit is reached.
func (l *lane) enqueue(c *call) error {
	u, group := l.users[c.caller.User], c.caller.Group
	switch {
	case l.room == 0, l.eachUser == 0, u != nil && u.calls.Len() >= l.eachUser, group != "" && l.groups[group] >= l.eachGroup:
		return ErrFull
	}
	l.room--
	if group != "" {
		l.groups[group]++
	}
	if u == nil {
		u = &userQueue{user: c.caller.User}
		u.element = l.waiting.PushBack(u)
		l.users[u.user] = u
	}
	c.element = u.calls.PushBack(c)
	return nil
}

// pop removes the next operation, or returns nil if there is none.
func (l *lane) pop() *call {
	first := l.waiting.Front()
	if first == nil {
		return nil
	}
	c := first.Value.(*userQueue).calls.Front().Value.(*call)
	l.waiting.MoveToBack(first)
	l.remove(c)
	return c
}

// remove removes a waiting operation.
func (l *lane) remove(c *call) {
	u, group := l.users[c.caller.User], c.caller.Group
	u.calls.Remove(c.element)
	l.room++
	if group != "" {
		if l.groups[group]--; l.groups[group] == 0 {
			delete(l.groups, group)
		}
	}
	if u.calls.Len() == 0 {
		l.waiting.Remove(u.element)
		delete(l.users, u.user)
	}
}
