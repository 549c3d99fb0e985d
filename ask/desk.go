package ask

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

// Event is told to those who watch a desk: an ask that waits, or one that is
// settled.
type Event struct {
	Ask    Ask
	Answer *Answer // nil while it waits
}

// A Desk asks and answers. It is safe for concurrent use.
type Desk struct {
	store Store

	mu      sync.Mutex
	waiting map[string][]chan struct{} // by the ID of the ask
	watch   map[int]func(Event)
	watches int
}

// New returns a desk on what the store has.
func New(store Store) *Desk {
	return &Desk{store: store, waiting: map[string][]chan struct{}{}, watch: map[int]func(Event){}}
}

// Ask keeps a question, tells those who watch, and waits for its answer. Where ctx
// ends first the question stays, for who comes back to [Desk.Wait]; who wants it
// gone calls [Desk.Cancel].
func (d *Desk) Ask(ctx context.Context, a Ask) (Answer, error) {
	id, err := d.Put(ctx, a)
	if err != nil {
		return Answer{}, err
	}
	return d.Wait(ctx, id)
}

// Put keeps a question and tells those who watch, without waiting. It returns the
// ID of it. One that is asked again, of the same ID and about the same, as by a
// process that goes on where another one ended, is the one that was asked before,
// with its answer where there is one.
func (d *Desk) Put(ctx context.Context, a Ask) (string, error) {
	if a.ID == "" {
		a.ID = a.Session + "." + rand.Text()
	}
	a.Asked = time.Now().UTC()
	if err := a.check(); err != nil {
		return "", fmt.Errorf("ask: %w", err)
	}
	switch old, answer, err := d.store.Get(ctx, a.ID); {
	case err == nil && old.same(a):
		if answer == nil {
			d.tell(Event{Ask: old})
		}
		return a.ID, nil
	case err != nil && !errors.Is(err, ErrUnknown):
		return "", fmt.Errorf("ask: %w", err)
	}
	if err := d.store.Put(ctx, a); err != nil {
		return "", fmt.Errorf("ask: %w", err)
	}
	d.tell(Event{Ask: a})
	return a.ID, nil
}

// Wait waits for the answer to a question that was asked before, also by another
// process. When its deadline passes it is [Expired].
func (d *Desk) Wait(ctx context.Context, id string) (Answer, error) {
	changed, done := d.wait(id)
	defer done()
	for {
		a, answer, err := d.store.Get(ctx, id)
		if err != nil {
			return Answer{}, fmt.Errorf("wait for the answer to %s: %w", id, err)
		}
		if answer != nil {
			return *answer, nil
		}
		late, stop := deadline(a.Deadline)
		select {
		case <-changed:
		case <-late:
			err = d.settle(ctx, a, Answer{Outcome: Expired})
		case <-ctx.Done():
			err = context.Cause(ctx)
		}
		stop()
		if settled := (*SettledError)(nil); err != nil && !errors.As(err, &settled) {
			return Answer{}, err
		}
	}
}

// deadline is a channel that is closed at a time, never for none.
func deadline(at time.Time) (<-chan time.Time, func()) {
	if at.IsZero() {
		return nil, func() {}
	}
	t := time.NewTimer(time.Until(at))
	return t.C, func() { t.Stop() }
}

// Answer settles a question by a principal. The error is a [*SettledError] where
// somebody was first or it is too late, a [*NotYoursError] where it is not for them.
func (d *Desk) Answer(ctx context.Context, id string, answer Answer) error {
	a, settled, err := d.store.Get(ctx, id)
	switch {
	case err != nil:
		return fmt.Errorf("answer %s: %w", id, err)
	case answer.By != a.Principal:
		return &NotYoursError{id, answer.By}
	case settled != nil:
		return &SettledError{id, *settled}
	case !a.Deadline.IsZero() && time.Now().After(a.Deadline):
		answer = Answer{Outcome: Expired}
	}
	if n := len(answer.Content) + len(answer.Feedback); n > MaxPayload {
		return fmt.Errorf("answer %s: it has %d bytes, more than %d", id, n, MaxPayload)
	}
	err = d.settle(ctx, a, answer)
	if err == nil && answer.Outcome == Expired {
		return &SettledError{id, answer}
	}
	return err
}

// Cancel takes a question back. One that is settled stays as it is.
func (d *Desk) Cancel(ctx context.Context, id string) error {
	a, settled, err := d.store.Get(ctx, id)
	if err != nil || settled != nil {
		return err
	}
	err = d.settle(ctx, a, Answer{Outcome: Cancelled})
	if first := (*SettledError)(nil); errors.As(err, &first) {
		return nil
	}
	return err
}

// Forget takes a question and its answer out of the store, once it was used: what was
// answered may be a secret. One that is not there is no error.
func (d *Desk) Forget(ctx context.Context, id string) error {
	if err := d.store.Delete(ctx, id); err != nil {
		return fmt.Errorf("forget %s: %w", id, err)
	}
	return nil
}

// Open are the questions of a session that wait, the oldest first, of which a
// principal may answer; those of all for the zero principal.
func (d *Desk) Open(ctx context.Context, session string, by policy.Principal) ([]Ask, error) {
	all, err := d.store.Open(ctx, session)
	var out []Ask
	for _, a := range all {
		if by == (policy.Principal{}) || a.Principal == by {
			out = append(out, a)
		}
	}
	return out, err
}

// Recheck has those who wait for a question look again: another process may have
// settled it.
func (d *Desk) Recheck(id string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.wake(id)
}

// Watch has f called with each ask that begins to wait or is settled here, from the
// goroutine that does it: f must not wait. The result ends that.
func (d *Desk) Watch(f func(Event)) (cancel func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.watches++
	n := d.watches
	d.watch[n] = f
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.watch, n)
	}
}

// settle keeps an answer, and tells everybody.
func (d *Desk) settle(ctx context.Context, a Ask, answer Answer) error {
	answer.At = time.Now().UTC()
	stands, err := d.store.Settle(ctx, a.ID, answer)
	if err != nil {
		return fmt.Errorf("settle %s: %w", a.ID, err)
	}
	d.Recheck(a.ID)
	if stands != nil {
		return &SettledError{a.ID, *stands}
	}
	d.tell(Event{Ask: a, Answer: &answer})
	return nil
}

// wait returns a channel that gets a value when a question may be settled.
func (d *Desk) wait(id string) (<-chan struct{}, func()) {
	c := make(chan struct{}, 1)
	d.mu.Lock()
	defer d.mu.Unlock()
	d.waiting[id] = append(d.waiting[id], c)
	return c, func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		left := d.waiting[id][:0]
		for _, other := range d.waiting[id] {
			if other != c {
				left = append(left, other)
			}
		}
		if d.waiting[id] = left; len(left) == 0 {
			delete(d.waiting, id)
		}
	}
}

// wake is Recheck with d.mu held.
func (d *Desk) wake(id string) {
	for _, c := range d.waiting[id] {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}

func (d *Desk) tell(e Event) {
	d.mu.Lock()
	all := make([]func(Event), 0, len(d.watch))
	for _, n := range slices.Sorted(maps.Keys(d.watch)) { // in the order of watching
		all = append(all, d.watch[n])
	}
	d.mu.Unlock()
	for _, f := range all {
		f(e)
	}
}
