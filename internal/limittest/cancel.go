package limittest

import (
	"context"
	"sync/atomic"
	"testing"
)

// EachCancel calls f repeatedly until it succeeds. The first time, the context
// of f is cancelled at its first use, the second time at its second use, and so
// on. If f calls a database, each of its calls thus fails once.
func EachCancel(t testing.TB, f func(ctx context.Context) error) {
	t.Helper()
	for n := range int64(10_000) {
		ctx, cancel := context.WithCancel(t.Context())
		c := &countedContext{Context: ctx, cancel: cancel}
		c.left.Store(n)
		err := f(c)
		cancel()
		switch {
		case err == nil:
			return
		case c.left.Load() >= 0:
			t.Fatalf("fails without being cancelled: %v", err)
		}
	}
	t.Fatal("fails after 10000 uses of its context")
}

// countedContext is a context that is cancelled after a number of uses.
type countedContext struct {
	context.Context
	cancel context.CancelFunc
	left   atomic.Int64
}

func (c *countedContext) Done() <-chan struct{} {
	c.use()
	return c.Context.Done()
}

func (c *countedContext) Err() error {
	c.use()
	return c.Context.Err()
}

func (c *countedContext) use() {
	if c.left.Add(-1) < 0 {
		c.cancel()
	}
}
