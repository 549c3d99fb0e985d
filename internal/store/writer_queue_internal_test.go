package store

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Many writers are admitted in order, but urgent ones first, even if the last one
// waits longer than the limit.
func TestWritersAreAdmittedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q writerQueue
		var all sync.WaitGroup
		var got, want []int
		for i := range 200 {
			all.Go(func() {
				if err := q.acquire(t.Context(), i%50 == 49, 10*time.Second); err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				got = append(got, i)
				time.Sleep(time.Second) // work
				q.release()
			})
			synctest.Wait()
			if i%50 != 49 {
				want = append(want, i)
			}
		}
		want = slices.Insert(want, 1, 49, 99, 149, 199)
		all.Wait()
		if !slices.Equal(got, want) || q.writing || q.urgent != 0 {
			t.Errorf("admitted %v, still writing: %t", got, q.writing)
		}
	})
}

func TestWriterWaitsForLimitedTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var q writerQueue
		ctx, cancel := context.WithCancel(t.Context())
		if err := q.acquire(ctx, false, time.Second); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		if err := q.acquire(ctx, false, time.Second); !errors.Is(err, ErrBusy) || time.Since(start) != time.Second {
			t.Errorf("error after %v: %v", time.Since(start), err)
		}
		cancelled, next := make(chan error, 1), make(chan error, 1)
		go func() { cancelled <- q.acquire(ctx, true, time.Hour) }()
		synctest.Wait()
		go func() { next <- q.acquire(t.Context(), false, time.Hour) }()
		synctest.Wait()
		cancel()
		if err := <-cancelled; !errors.Is(err, context.Canceled) {
			t.Errorf("error of a cancelled wait: %v", err)
		}
		q.release()
		if err := <-next; err != nil {
			t.Errorf("after a cancelled wait: %v", err)
		}
		q.release()
		if q.writing || len(q.waiting) > 0 || q.urgent != 0 {
			t.Errorf("not free: %t, %d waiting", q.writing, len(q.waiting))
		}
	})
}
