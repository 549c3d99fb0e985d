package queue

import "testing"

// A lane forgets the users and groups without waiting operations.
func TestLaneForgets(t *testing.T) {
	l := newLane(Options{Waiting: 10, EachUser: 10, EachGroup: 10})
	for _, c := range []Caller{{User: "a", Group: "g"}, {User: "a", Group: "g"}, {User: "b", Group: "h"}, {User: "c"}} {
		if err := l.enqueue(&call{caller: c}); err != nil {
			t.Fatal(err)
		}
	}
	if len(l.users) != 3 || len(l.groups) != 2 {
		t.Errorf("users %v, groups %v", l.users, l.groups)
	}
	for range 4 {
		if l.pop() == nil {
			t.Fatal("an operation is missing")
		}
	}
	if l.pop() != nil || len(l.users) != 0 || len(l.groups) != 0 || l.room != 10 || l.waiting.Len() != 0 {
		t.Errorf("left users %v, groups %v, room %d", l.users, l.groups, l.room)
	}
}
