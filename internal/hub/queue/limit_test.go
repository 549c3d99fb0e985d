package queue_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/loadout-dev/loadout/internal/hub/queue"
)

// waiter starts operations that wait, and records the order in which they run.
type waiter struct {
	q     *queue.Queue
	mu    sync.Mutex
	order []string
	all   sync.WaitGroup
}

// wait starts an operation. It returns whether the operation waits.
func (w *waiter) wait(t *testing.T, name string, c queue.Caller) bool {
	t.Helper()
	full := false
	w.all.Go(func() {
		leave, err := w.q.AcquireFor(t.Context(), c)
		w.mu.Lock()
		if full = errors.Is(err, queue.ErrFull); err == nil {
			w.order = append(w.order, name)
		}
		w.mu.Unlock()
		if err == nil {
			leave()
		}
	})
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	return !full
}

// Each user and each group may have so many waiting operations, and no more; an
// operation that ends makes room.
func TestLimitsOfUsersAndGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiter{q: queue.NewWith(queue.Options{Slots: 1, Waiting: 100, EachUser: 2, EachGroup: 3})}
		for range 2 { // the counts are as before when all have ended
			leave, err := w.q.Acquire(t.Context(), "running")
			if err != nil {
				t.Fatal(err)
			}
			for _, step := range []struct {
				user, group string
				waits       bool
			}{
				{"a", "", true}, {"a", "", true}, {"a", "", false}, // the user's limit
				{"b", "g", true}, {"b", "g", true}, {"b", "g", false},
				{"c", "g", true}, {"d", "g", false}, // the group's limit
				{"d", "h", true}, {"d", "", true}, {"e", "", true}, {"f", "", true}, {"g", "", true}, // no group has no limit
			} {
				if got := w.wait(t, step.user, queue.Caller{User: step.user, Group: step.group}); got != step.waits {
					t.Errorf("%s of group %q waits: %t, want %t", step.user, step.group, got, step.waits)
				}
			}
			leave()
			w.all.Wait()
		}
	})
}

// Lanes take turns, so that a long one does not delay a short one.
func TestLanesTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &waiter{q: queue.NewWith(queue.Options{Slots: 1, Waiting: 10, EachUser: 10, EachGroup: 10, Lanes: 2})}
		leave, err := w.q.Acquire(t.Context(), "running")
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a1", "a2", "a3"} {
			w.wait(t, name, queue.Caller{User: name})
		}
		w.wait(t, "b1", queue.Caller{User: "b1", Lane: 1})
		w.wait(t, "b2", queue.Caller{User: "b2", Lane: 1})
		leave()
		w.all.Wait()
		if want := []string{"a1", "b1", "a2", "b2", "a3"}; !slices.Equal(w.order, want) {
			t.Errorf("order %q, want %q", w.order, want)
		}
	})
}

// An operation that gives up makes room for another of its group.
func TestGivingUpMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.NewWith(queue.Options{Slots: 1, Waiting: 10, EachUser: 1, EachGroup: 1})
		leave, err := q.Acquire(t.Context(), "running")
		if err != nil {
			t.Fatal(err)
		}
		for range 3 {
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error)
			go func() { _, err := q.AcquireFor(ctx, queue.Caller{User: "a", Group: "g"}); done <- err }()
			synctest.Wait()
			if _, err := q.AcquireFor(t.Context(), queue.Caller{User: "b", Group: "g"}); !errors.Is(err, queue.ErrFull) {
				t.Errorf("a second of the group: %v", err)
			}
			cancel()
			if err := <-done; !errors.Is(err, context.Canceled) {
				t.Errorf("the first gave up with %v", err)
			}
		}
		leave()
		if _, err := q.Acquire(t.Context(), "next"); err != nil {
			t.Error(err)
		}
	})
}
