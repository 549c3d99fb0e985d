package usage

import (
	"context"
	"sync"
	"time"
)

// Buffer collects counts in a batch and stores the batch some time after the first
// of them, because a transaction for each count would take too long. A node that is
// killed loses the counts that were not stored yet. A Buffer is safe for concurrent
// use. Use [NewBuffer] to create one, and close it.
type Buffer[T any] struct {
	delay time.Duration
	store func(context.Context, *T)

	mu     sync.Mutex // guards the fields below
	batch  *T         // nil if nothing is collected
	timer  *time.Timer
	closed bool

	storing sync.Mutex // held while a batch is stored
}

// NewBuffer returns an empty buffer, which calls store with each batch. The context
// of that call has no deadline. store must not call methods of the buffer.
func NewBuffer[T any](delay time.Duration, store func(ctx context.Context, batch *T)) *Buffer[T] {
	return &Buffer[T]{delay: delay, store: store}
}

// Update calls add, which adds counts to the current batch. The batch is the zero
// value if everything else is stored. Update does nothing after Close.
func (b *Buffer[T]) Update(add func(batch *T)) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed {
		return
	}
	if b.batch == nil {
		b.batch = new(T)
		b.timer = time.AfterFunc(b.delay, func() { b.storeBatch(context.Background()) })
	}
	add(b.batch)
}

// Flush stores the collected counts and waits until all are stored. If ctx is done
// before, it returns the cause, and the counts are stored in the background.
func (b *Buffer[T]) Flush(ctx context.Context) error {
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.storeBatch(context.WithoutCancel(ctx))
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close stores the collected counts and waits until all are stored.
func (b *Buffer[T]) Close() {
	b.mu.Lock()
	b.closed = true
	b.mu.Unlock()
	b.storeBatch(context.Background())
}

// storeBatch stores the current batch, after those that are being stored.
func (b *Buffer[T]) storeBatch(ctx context.Context) {
	b.storing.Lock()
	defer b.storing.Unlock()
	b.mu.Lock()
	batch := b.batch
	if batch != nil {
		b.timer.Stop()
		b.batch, b.timer = nil, nil
	}
	b.mu.Unlock()
	if batch != nil {
		b.store(ctx, batch)
	}
}
