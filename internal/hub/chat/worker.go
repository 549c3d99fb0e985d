package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// worker does what the inbox of one conversation says, while this node has its lease.
type worker struct {
	e       *Engine
	id      string
	journal *journal
	desk    *desk
	talk    *talk       // nil until something is to be done
	lost    atomic.Bool // the conversation is another node's

	mu    sync.Mutex // guards what follows
	lease store.Lease
}

// start begins to work on a conversation whose lease this node took. The caller has
// entered.
func (e *Engine) start(id string, l store.Lease) {
	w := &worker{e: e, id: id, lease: l}
	w.journal = &journal{e: e, id: id, lease: w.held, woken: make(chan struct{}, 1)}
	w.desk = newDesk(w)
	e.running.Go(func() {
		defer e.leave()
		w.run()
	})
}

func (w *worker) held() store.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease
}

// run works until nothing is left to do, or the conversation is another node's.
func (w *worker) run() {
	ctx, cancel := context.WithCancelCause(w.e.ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(ctx, cancel) })
	err := w.work(ctx)
	if w.talk != nil {
		w.talk.close()
	}
	cancel(nil)
	renewing.Wait()
	if err != nil {
		w.handOver(err)
	}
}

// work returns nil where the lease was given back, as nothing is left to do.
func (w *worker) work(ctx context.Context) error {
	var ended *Event
	for {
		job, err := w.next(ctx, ended)
		if err != nil || job == nil {
			return err
		}
		if ended, err = w.do(ctx, job); err != nil {
			return err
		}
	}
}

// renew keeps the lease, and ends the work where it cannot, before another node can
// have it.
func (w *worker) renew(ctx context.Context, lost context.CancelCauseFunc) {
	span := w.e.opts.Lease
	tick := time.NewTicker(span / 4)
	defer tick.Stop()
	good := time.Now()
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		asked := time.Now()
		asking, stop := context.WithTimeout(ctx, span/4)
		l, err := w.e.db.Leases.Renew(asking, w.held(), span)
		stop()
		switch {
		case err == nil:
			good = asked
			w.mu.Lock()
			w.lease = l
			w.mu.Unlock()
		case errors.Is(err, store.ErrHeld), time.Since(good) > span/2:
			w.lost.Store(true)
			lost(errLost)
			return
		}
	}
}

// handOver has another node, or this one, go on at once: the lease is over. Where that
// cannot be written it is over by itself.
func (w *worker) handOver(why error) {
	if !errors.Is(why, errStopping) && !errors.Is(why, errLost) && !errors.Is(why, store.ErrNotFound) {
		w.e.opts.Logger.Warn("a turn is broken off, and resumed later", "conversation", w.id, "error", why)
		return // in a moment: what is wrong may last
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(w.e.ctx), time.Second)
	defer stop()
	_, err := w.e.db.Leases.Renew(ctx, w.held(), time.Millisecond)
	if err != nil && !errors.Is(err, store.ErrHeld) {
		w.e.opts.Logger.Debug("the lease of a conversation runs out by itself", "conversation", w.id, "error", err)
	}
}

// job is an input whose turn it is.
type job struct {
	input
	owner   account.UserID
	session store.Session
	givenUp bool                              // too many nodes began it
	actor   atomic.Pointer[account.Principal] // who acts in it, from when it is opened
}

// next keeps how an input ended, where there was one, and takes the next, or gives the
// lease back where there is none: by what the inbox says in the same transaction, so
// that nothing is left behind. Where the node ends it takes none.
func (w *worker) next(ctx context.Context, ended *Event) (*job, error) {
	var out *job
	var stopping bool
	err := w.locked(context.WithoutCancel(ctx), func(c *change) error {
		out = nil
		s, st, err := c.state(ctx)
		if err != nil {
			return err
		}
		if ended != nil {
			st.Running, st.Tries = false, 0
			if err := c.tell(ctx, row{Event: *ended}); err != nil {
				return err
			}
		}
		switch stopping = w.e.closing() && (st.Running || st.Wanted > st.Taken); {
		case stopping:
			return c.setState(ctx, s, st)
		case st.Running:
			out, err = c.again(ctx, s, st)
		default:
			out, err = c.take(ctx, s, st)
		}
		if err != nil || out != nil {
			return err
		}
		return c.Leases.Release(ctx, w.held())
	})
	if err == nil && stopping {
		err = errStopping
	}
	if err != nil {
		return nil, fmt.Errorf("take what is next: %w", err)
	}
	return out, nil
}

// locked makes a change under the lease.
func (w *worker) locked(ctx context.Context, f func(c *change) error) error {
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	return w.journal.write(ctx, f)
}

// again is the input that another node began.
func (c *change) again(ctx context.Context, s store.Session, st state) (*job, error) {
	all, err := inputs(ctx, c.Events, c.id, st.Taken-1)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].seq != st.Taken {
		return nil, fmt.Errorf("input %d of conversation %q: %w", st.Taken, c.id, store.ErrCorrupt)
	}
	st.Tries++
	if err := c.setState(ctx, s, st); err != nil {
		return nil, err
	}
	out := &job{input: all[0], owner: account.UserID(s.Owner), session: s, givenUp: st.Tries >= maxTries}
	return out, c.tell(ctx, row{Event: Event{Type: Resumed, Input: st.Taken}})
}

// take takes the first input that nobody cancelled, nil where there is none.
func (c *change) take(ctx context.Context, s store.Session, st state) (*job, error) {
	all, err := inputs(ctx, c.Events, c.id, st.Taken)
	if err != nil {
		return nil, err
	}
	cancelled := int64(0) // what came before it is
	for _, in := range all {
		if in.Kind == cancelNote {
			cancelled = in.seq
		}
	}
	st.Tries = 0
	var told []row
	var next *input
	for i, in := range all {
		st.Taken = in.seq
		switch {
		case in.Kind.note():
			continue
		case in.seq < cancelled:
			told = append(told, row{Event: Event{Type: Ended, Input: in.seq, Reason: Cancelled}})
			continue
		}
		next, st.Running = &all[i], true
		told = append(told, row{Event: Event{Type: Begun, Input: in.seq}})
		break
	}
	if err := c.setState(ctx, s, st); err != nil {
		return nil, err
	}
	if err := c.tell(ctx, told...); err != nil || next == nil {
		return nil, err
	}
	return &job{input: *next, owner: account.UserID(s.Owner), session: s}, nil
}

// sweep goes on with what nodes left that are gone, and settles questions that nobody
// answered in time.
func (e *Engine) sweep(ctx context.Context) error {
	lapsed, err := e.db.Leases.Lapsed(ctx, store.MaxPage)
	for _, l := range lapsed {
		err = errors.Join(err, e.adopt(ctx, l.Name))
	}
	return errors.Join(err, e.expire(ctx))
}

// adopt goes on with a conversation whose node is gone.
func (e *Engine) adopt(ctx context.Context, id string) error {
	if _, err := e.db.Sessions.Get(ctx, id); errors.Is(err, store.ErrNotFound) {
		return nil // it is a lease of something else
	} else if err != nil {
		return err
	}
	if !e.enter() {
		return nil
	}
	l, err := e.db.Leases.Take(ctx, id, e.node, e.opts.Lease)
	if err != nil {
		e.leave()
		if errors.Is(err, store.ErrHeld) {
			return nil // another one was faster
		}
		return err
	}
	e.start(id, l)
	return nil
}
