package limittest

import (
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
)

// CancelAtEach calls f repeatedly until it succeeds. The first time, the context
// of f is cancelled at its first use, the second time at its second use, and so
// on. If f calls a database, each of its calls thus fails once.
func CancelAtEach(t testing.TB, f func(ctx context.Context) error) {
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

// CancelReadAtEach calls read as [CancelAtEach] does. Whenever read succeeds, it
// must return the same value as a call that is not cancelled, and not just a
// part of it. Values are compared as JSON if they can be encoded.
func CancelReadAtEach(t testing.TB, read func(ctx context.Context) (any, error)) {
	t.Helper()
	v, err := read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	want := encode(v)
	CancelAtEach(t, func(ctx context.Context) error {
		v, err := read(ctx)
		if got := encode(v); err == nil && got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		return err
	})
}

func encode(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprintf("%+v", v)
	}
	return string(b)
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
