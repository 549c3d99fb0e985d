package store

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"
)

// writerQueue admits one writer at a time, in order of arrival. The pool of
// package sql gives a free connection to an arbitrary waiting goroutine, so
// under load some writers would wait for a very long time. Urgent writers go
// first. The zero value is an empty queue that is ready to use. It is safe for
// concurrent use.
type writerQueue struct {
	mu      sync.Mutex // guards the fields below
	writing bool
	since   time.Time // when the current writer was admitted
	waiting []chan struct{}
	urgent  int // number of urgent writers at the start of waiting
}

// acquire waits until the caller may write. It fails with [ErrBusy] if a single
// earlier writer takes longer than limit, because that writer may itself be
// waiting for the caller. The caller must call release.
func (q *writerQueue) acquire(ctx context.Context, urgent bool, limit time.Duration) error {
	q.mu.Lock()
	if !q.writing {
		q.writing, q.since = true, time.Now()
		q.mu.Unlock()
		return nil
	}
	turn := make(chan struct{})
	if urgent {
		q.waiting = slices.Insert(q.waiting, q.urgent, turn)
		q.urgent++
	} else {
		q.waiting = append(q.waiting, turn)
	}
	left := limit - time.Since(q.since)
	q.mu.Unlock()
	t := time.NewTimer(left)
	defer t.Stop()
	for {
		select {
		case <-turn:
			return nil
		case <-ctx.Done():
			q.cancelWait(turn)
			return fmt.Errorf("wait for concurrent changes: %w", context.Cause(ctx))
		case <-t.C:
		}
		q.mu.Lock()
		left = limit - time.Since(q.since)
		q.mu.Unlock()
		if left <= 0 {
			q.cancelWait(turn)
			return fmt.Errorf("wait for concurrent changes: %w", ErrBusy)
		}
		t.Reset(left)
	}
}

// cancelWait removes a writer that stops waiting. If the writer was admitted in the
// meantime, cancelWait admits the next one.
func (q *writerQueue) cancelWait(turn chan struct{}) {
	q.mu.Lock()
	i := slices.Index(q.waiting, turn)
	if i >= 0 {
		q.remove(i)
	}
	q.mu.Unlock()
	if i < 0 { // admitted meanwhile
		q.release()
	}
}

// release admits the next writer.
func (q *writerQueue) release() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(q.waiting) == 0 {
		q.writing = false
		return
	}
	close(q.waiting[0])
	q.remove(0)
	q.since = time.Now()
}

// remove removes a waiting writer. The caller must hold q.mu.
func (q *writerQueue) remove(i int) {
	q.waiting = slices.Delete(q.waiting, i, i+1)
	if i < q.urgent {
		q.urgent--
	}
}
