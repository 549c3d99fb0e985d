package queue_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/hub/queue"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// Users take turns, however many requests one of them queued first. The requests of one
// user stay in order.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(1, 100)
		release, err := q.Acquire(t.Context(), "somebody")
		if err != nil {
			t.Fatal(err)
		}
		var mu sync.Mutex
		var order []string
		want := func(user string, n int) {
			go func() {
				release, err := q.Acquire(t.Context(), user)
				if err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				order = append(order, fmt.Sprint(user, n))
				mu.Unlock()
				release()
			}()
			synctest.Wait()
		}
		for n := range 4 {
			want("ada", n)
		}
		want("bob", 0)
		want("eve", 0)
		want("bob", 1)
		release()
		release() // is nothing a second time
		synctest.Wait()
		if got := []string{"ada0", "bob0", "eve0", "ada1", "bob1", "ada2", "ada3"}; !slices.Equal(order, got) {
			t.Errorf("in the order %v, want %v", order, got)
		}
		if taken, waiting := q.Stats(); taken != 0 || waiting != 0 {
			t.Errorf("in the end %d slots are taken and %d operations wait", taken, waiting)
		}
	})
}

func TestFull(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := queue.New(1, 1)
		release, err := q.Acquire(t.Context(), "ada")
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("gone")
		done := make(chan error)
		go func() { _, err := q.Acquire(ctx, "bob"); done <- err }()
		synctest.Wait()
		if _, err := q.Acquire(t.Context(), "eve"); !errors.Is(err, queue.ErrFull) {
			t.Errorf("a full queue returned %v", err)
		}
		cancel(errGone)
		if err := <-done; !errors.Is(err, errGone) {
			t.Errorf("who gave up got %v", err)
		}
		release()
		if release, err = q.Acquire(t.Context(), "eve"); err != nil { // nothing of bob's is left
			t.Fatal(err)
		}
		release()
	})
}

func TestWaitingPositionIsKept(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		slots := rapid.IntRange(1, 3).Draw(rt, "places")
		q := queue.New(slots, 1000)
		var (
			entries []context.CancelFunc
			mu      sync.Mutex
			running int
			all     sync.WaitGroup
		)
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			if len(entries) > 0 && rapid.Bool().Draw(rt, "end one") {
				i := rapid.IntRange(0, len(entries)-1).Draw(rt, "which")
				entries[i]()
				entries = slices.Delete(entries, i, i+1)
				continue
			}
			ctx, cancel := context.WithCancel(t.Context())
			entries = append(entries, cancel)
			user := rapid.SampledFrom([]string{"a", "b", "c"}).Draw(rt, "user")
			all.Go(func() {
				release, err := q.Acquire(ctx, user)
				if err != nil {
					return
				}
				mu.Lock()
				if running++; running > slots {
					t.Errorf("%d run at once, more than %d", running, slots)
				}
				mu.Unlock()
				<-ctx.Done()
				mu.Lock()
				running--
				mu.Unlock()
				release()
			})
		}
		for _, cancel := range entries {
			cancel()
		}
		all.Wait()
		for range slots {
			if _, err := q.Acquire(t.Context(), "last"); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func ExampleQueue() {
	runs := queue.New(4, 1000) // sandboxes of this node
	release, err := runs.Acquire(context.Background(), "ada")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer release()
	fmt.Println("run it")
	// Output: run it
}
