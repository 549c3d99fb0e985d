package usage_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/usage"
)

// Counts are stored together once the delay is over, on a flush and on a close.
func TestBuffer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex // guards stored
		var stored [][]int
		b := usage.NewBuffer(time.Second, func(_ context.Context, batch *[]int) {
			mu.Lock()
			defer mu.Unlock()
			stored = append(stored, *batch)
		})
		add := func(n int) { b.Update(func(batch *[]int) { *batch = append(*batch, n) }) }
		want := func(what string, want ...[]int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if !slices.EqualFunc(stored, want, slices.Equal[[]int]) {
				t.Errorf("%s, stored %v, want %v", what, stored, want)
			}
			stored = nil
		}
		add(1)
		time.Sleep(900 * time.Millisecond)
		add(2)
		want("before the delay is over")
		time.Sleep(100 * time.Millisecond)
		want("after the delay", []int{1, 2})
		add(3)
		for range 2 {
			if err := b.Flush(t.Context()); err != nil {
				t.Error(err)
			}
		}
		want("after a flush", []int{3})
		time.Sleep(time.Minute)
		want("later")
		add(4)
		b.Close()
		want("after a close", []int{4})
		add(5)
		b.Close()
		time.Sleep(time.Minute)
		want("after another close")
	})
}

// A flush waits for a batch that is being stored, but not after its context is done.
// No counts are lost.
func TestBufferFlushEndsWithItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var stored []string
		release := make(chan struct{})
		b := usage.NewBuffer(time.Second, func(ctx context.Context, batch *string) {
			<-release
			if ctx.Err() != nil {
				t.Errorf("%s is stored with a context that is done", *batch)
			}
			stored = append(stored, *batch)
		})
		b.Update(func(batch *string) { *batch = "a" })
		ctx, stop := context.WithTimeout(t.Context(), time.Second)
		defer stop()
		start := time.Now()
		if err := b.Flush(ctx); !errors.Is(err, context.DeadlineExceeded) || time.Since(start) != time.Second {
			t.Errorf("after %v: %v", time.Since(start), err)
		}
		b.Update(func(batch *string) { *batch = "b" })
		close(release)
		if err := b.Flush(t.Context()); err != nil || !slices.Equal(stored, []string{"a", "b"}) {
			t.Errorf("stored %v: %v", stored, err)
		}
		b.Close()
	})
}
