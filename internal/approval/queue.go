package approval

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
)

// Event notifies subscribers that a request was submitted or resolved.
type Event struct {
	Request Request
	Answer  *Answer // nil while pending
}

// Queue stores requests and delivers each answer to the code that waits for it.
// It is safe for concurrent use.
type Queue struct {
	store Store

	mu             sync.Mutex
	waiters        map[string][]chan struct{} // by request ID
	subscribers    map[int]func(Event)
	lastSubscriber int
}

// NewQueue returns a queue that keeps its requests in store.
func NewQueue(store Store) *Queue {
	return &Queue{store: store, waiters: map[string][]chan struct{}{}, subscribers: map[int]func(Event){}}
}

// Ask submits a request and waits for its answer. If waiting fails, it cancels
// the request. After an elicitation, it deletes the request and the answer from
// the store, because the answer may contain a secret.
func (d *Queue) Ask(ctx context.Context, a Request) (Answer, error) {
	id, err := d.Submit(ctx, a)
	if err != nil {
		return Answer{}, err
	}
	answer, err := d.Wait(ctx, id)
	switch {
	case err != nil:
		err = errors.Join(err, d.Cancel(context.WithoutCancel(ctx), id))
	case a.Kind == KindElicitation:
		err = d.Delete(ctx, id)
	}
	return answer, err
}

// Submit stores a request, notifies subscribers, and returns the request's ID
// without waiting for an answer. It removes disallowed characters from the
// message, which may contain text from skills and servers; see
// [untrusted.Text]. If a request with the same ID and content exists, for
// example after a crash, Submit returns its ID. That request may already be
// resolved.
func (d *Queue) Submit(ctx context.Context, a Request) (string, error) {
	if a.ID == "" {
		a.ID = a.Session + "." + rand.Text()
	}
	a.Created, a.Message = time.Now().UTC(), untrusted.New(a.Message).ForPage()
	if err := a.validate(); err != nil {
		return "", fmt.Errorf("submit approval request: %w", err)
	}
	switch old, answer, err := d.store.Get(ctx, a.ID); {
	case err == nil && old.sameContent(a):
		if answer == nil {
			d.notify(Event{Request: old})
		}
		return a.ID, nil
	case err != nil && !errors.Is(err, ErrNotFound):
		return "", fmt.Errorf("submit approval request: %w", err)
	}
	if err := d.store.Put(ctx, a); err != nil {
		return "", fmt.Errorf("submit approval request: %w", err)
	}
	d.notify(Event{Request: a})
	return a.ID, nil
}

// Wait waits for the answer to a request, which may have been submitted by
// another process. When the deadline passes, Wait resolves the request as
// [Expired].
func (d *Queue) Wait(ctx context.Context, id string) (Answer, error) {
	changed, done := d.addWaiter(id)
	defer done()
	for {
		a, answer, err := d.store.Get(ctx, id)
		if err != nil {
			return Answer{}, fmt.Errorf("wait for approval request %s: %w", id, err)
		}
		if answer != nil {
			return *answer, nil
		}
		late, stop := deadlineTimer(a.Deadline)
		select {
		case <-changed:
		case <-late:
			err = d.resolve(ctx, a, Answer{Outcome: Expired})
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		stop()
		if resolved := (*ResolvedError)(nil); err != nil && !errors.As(err, &resolved) {
			return Answer{}, err
		}
	}
}

// deadlineTimer returns a channel that receives a value at the given time, and
// a function that stops the timer. For the zero time, the channel is nil.
func deadlineTimer(at time.Time) (<-chan time.Time, func()) {
	if at.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(at))
	return t.C, func() { t.Stop() }
}

// Resolve answers a request. If the request was already resolved or has
// expired, the error is a [*ResolvedError]. If answer.By is not allowed to
// answer, the error is a [*NotAllowedError].
func (d *Queue) Resolve(ctx context.Context, id string, answer Answer) error {
	a, resolved, err := d.store.Get(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("resolve approval request %s: %w", id, err)
	case answer.By != a.Principal:
		return &NotAllowedError{id, answer.By}
	case resolved != nil:
		return &ResolvedError{id, *resolved}
	case !a.Deadline.IsZero() && time.Now().After(a.Deadline):
		answer = Answer{Outcome: Expired}
	}
	if n := len(answer.Content) + len(answer.Feedback); n > MaxPayload {
		return fmt.Errorf("resolve approval request %s: answer too large (%d bytes, limit %d)", id, n, MaxPayload)
	}
	err = d.resolve(ctx, a, answer)
	if err == nil && answer.Outcome == Expired {
		return &ResolvedError{id, answer}
	}
	return err
}

// Cancel withdraws a request. It does nothing if the request is already
// resolved.
func (d *Queue) Cancel(ctx context.Context, id string) error {
	a, resolved, err := d.store.Get(ctx, id)
	if err != nil || resolved != nil {
		return err
	}
	err = d.resolve(ctx, a, Answer{Outcome: Cancelled})
	if first := (*ResolvedError)(nil); errors.As(err, &first) {
		return nil
	}
	return err
}

// Delete removes a request and its answer from the store. It does nothing if
// the request does not exist. If the answer may contain a secret, the caller
// must delete the request after use.
func (d *Queue) Delete(ctx context.Context, id string) error {
	if err := d.store.Delete(ctx, id); err != nil {
		return fmt.Errorf("delete approval request %s: %w", id, err)
	}
	return nil
}

// Pending returns the pending requests of a session that a principal may
// answer, oldest first. For the zero principal, it returns all pending requests
// of the session.
func (d *Queue) Pending(ctx context.Context, session string, by policy.Principal) ([]Request, error) {
	all, err := d.store.Pending(ctx, session)
	var out []Request
	for _, a := range all {
		if by == (policy.Principal{}) || a.Principal == by {
			out = append(out, a)
		}
	}
	return out, err
}

// WakeWaiters makes all waiters for a request read the store again. It must be
// called when another process may have resolved the request.
func (d *Queue) WakeWaiters(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wakeWaitersLocked(id)
}

// Subscribe calls f for each request that is submitted or resolved through this
// queue, on the goroutine that submits or resolves it. f must not block. cancel
// ends the subscription.
func (d *Queue) Subscribe(f func(Event)) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lastSubscriber++
	n := d.lastSubscriber
	d.subscribers[n] = f
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.subscribers, n)
	}
}

// resolve stores the answer to the request a and notifies waiters and
// subscribers.
func (d *Queue) resolve(ctx context.Context, a Request, answer Answer) error {
	answer.ResolvedAt = time.Now().UTC()
	stands, err := d.store.Resolve(ctx, a.ID, answer)
	if err != nil {
		return fmt.Errorf("resolve approval request %s: %w", a.ID, err)
	}
	d.WakeWaiters(a.ID)
	if stands != nil {
		return &ResolvedError{a.ID, *stands}
	}
	d.notify(Event{Request: a, Answer: &answer})
	return nil
}

// addWaiter returns a channel that receives a value when the request may have
// been resolved. The returned function removes the waiter.
func (d *Queue) addWaiter(id string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiters[id] = append(d.waiters[id], c)
	return c, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		left := d.waiters[id][:0]
		for _, other := range d.waiters[id] {
			if other != c {
				left = append(left, other)
			}
		}
		if d.waiters[id] = left; len(left) == 0 {
			delete(d.waiters, id)
		}
	}
}

// wakeWaitersLocked wakes all waiters for a request. The caller must hold d.mu.
func (d *Queue) wakeWaitersLocked(id string) {
	for _, c := range d.waiters[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (d *Queue) notify(e Event) {
	d.mu.Lock()
	all := make([]func(Event), 0, len(d.subscribers))
	for _, n := range slices.Sorted(maps.Keys(d.subscribers)) { // in order of subscription
		all = append(all, d.subscribers[n])
	}
	d.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}
