package chat

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// worker processes the inbox of a conversation while this node holds its lease.
type worker struct {
	e         *Engine
	id        string
	journal   *journal
	approvals *approvalQueue
	active    *activeConversation // nil until the first input is processed
	answered  bool                // whether the last input that ended was a message
	lost      atomic.Bool         // whether this node no longer holds the lease

	mu    sync.Mutex // guards lease
	lease store.Lease
}

// startWorker starts a worker for a conversation whose lease this node holds. first
// is the input that was taken when the lease was acquired, or nil. The caller must
// have called addWorker.
func (e *Engine) startWorker(id string, l store.Lease, first *job) {
	w := &worker{e: e, id: id, lease: l}
	w.journal = &journal{e: e, id: id, lease: w.currentLease, wakeup: make(chan struct{}, 1)}
	w.approvals = newApprovalQueue(w)
	e.running.Go(func() {
		defer e.removeWorker()
		w.run(first)
	})
}

func (w *worker) currentLease() store.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.lease
}

// run processes inputs until the inbox is empty or the lease is lost. For first, see
// startWorker.
func (w *worker) run(first *job) {
	ctx, cancel := context.WithCancelCause(w.e.ctx)
	var renewing sync.WaitGroup
	renewing.Go(func() { w.renew(ctx, cancel) })
	err := w.processInputs(ctx, first)
	if w.active != nil {
		w.active.close()
	}
	cancel(nil)
	renewing.Wait()
	if err != nil {
		w.expireLease(err)
	}
	w.e.storeSnapshot(w.e.ctx, w.id)
}

// processInputs processes the inputs in order. When the inbox is empty, it
// releases the lease and returns nil.
func (w *worker) processInputs(ctx context.Context, job *job) error {
	var ended *Event
	var err error
	for {
		if job == nil {
			if job, err = w.nextJob(ctx, ended); err != nil || job == nil {
				return err
			}
		}
		if ended, err = w.runInput(ctx, job); err != nil {
			return err
		}
		w.answered = job.Kind == MessageInput
		job = nil
	}
}

// renew renews the lease periodically. If that fails, it cancels the work before
// another node can acquire the lease.
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
		l, err := w.e.db.Leases.Renew(asking, w.currentLease(), span)
		stop()
		switch {
		case err == nil:
			good = asked
			w.mu.Lock()
			w.lease = l
			w.mu.Unlock()
		case errors.Is(err, store.ErrLeaseHeld), time.Since(good) > 3*span/4:
			w.lost.Store(true)
			lost(errLeaseLost)
			return
		}
	}
}

// expireLease shortens the lease if the hub is stopping, or if this node lost the
// lease or the conversation was deleted, so that another node can continue the
// work at once. After other errors, which may persist, a node continues the work
// when the lease expires.
func (w *worker) expireLease(why error) {
	stopping := w.e.ctx.Err() != nil || errors.Is(why, errStopping)
	if !stopping && !errors.Is(why, errLeaseLost) && !errors.Is(why, store.ErrNotFound) {
		w.e.opts.Logger.Warn("turn interrupted, to be resumed", "conversation", w.id, "error", why)
		return // wait for the lease to expire, because the error may persist
	}
	ctx, stop := context.WithTimeout(context.WithoutCancel(w.e.ctx), w.e.opts.Lease/4)
	defer stop()
	_, err := w.e.db.Leases.Renew(ctx, w.currentLease(), time.Millisecond)
	if err != nil && !errors.Is(err, store.ErrLeaseHeld) {
		w.e.opts.Logger.Debug("cannot shorten lease", "conversation", w.id, "error", err)
	}
}

// job tracks an input that is being processed.
type job struct {
	input
	owner     account.UserID
	session   store.Session
	resumed   bool                              // whether another node started it
	abandoned bool                              // whether too many nodes have tried it
	actor     atomic.Pointer[account.Principal] // acting user, set when the conversation is opened
}

// nextJob publishes the final event of the previous input, if any, and takes the
// next input. If the inbox is empty, it releases the lease and returns nil. If
// the node is closing, it returns an error instead of taking an input. It uses a
// single transaction, so that no input is missed.
func (w *worker) nextJob(ctx context.Context, ended *Event) (*job, error) {
	var out *job
	var stopping, asking bool
	var row store.Session
	err := w.update(context.WithoutCancel(ctx), func(c *conversationTx) error {
		out = nil
		s, st, err := c.state(ctx)
		if err != nil {
			return err
		}
		if ended != nil {
			st.Running, st.Tries = false, 0
			if err := c.publish(ctx, eventRow{Event: *ended}); err != nil {
				return err
			}
		}
		asking = w.claimTitle(&s, ended)
		row = s
		switch stopping = w.e.isClosing() && (st.Running || st.Wanted > st.Taken); {
		case stopping:
			return c.setState(ctx, s, st)
		case st.Running:
			out, err = c.resumeInput(ctx, s, st)
		default:
			out, err = c.takeInput(ctx, s, st)
		}
		if err != nil || out != nil {
			return err
		}
		return c.Leases.Release(ctx, w.currentLease())
	})
	if err == nil && asking {
		w.startTitle(row)
	}
	if err == nil && stopping {
		err = errStopping
	}
	if err != nil {
		return nil, fmt.Errorf("read next input: %w", err)
	}
	return out, nil
}

// update calls f in a transaction that checks the lease.
func (w *worker) update(ctx context.Context, f func(c *conversationTx) error) error {
	w.journal.mu.Lock()
	defer w.journal.mu.Unlock()
	return w.journal.write(ctx, f)
}

// resumeInput returns the input for continuing a turn started on another node.
func (c *conversationTx) resumeInput(ctx context.Context, s store.Session, st state) (*job, error) {
	all, err := readInputs(ctx, c.Events, c.id, st.Taken-1)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 || all[0].seq != st.Taken {
		return nil, fmt.Errorf("read input %d of conversation %q: %w", st.Taken, c.id, store.ErrCorrupt)
	}
	st.Tries++
	if err := c.setState(ctx, s, st); err != nil {
		return nil, err
	}
	out := &job{input: all[0], owner: account.UserID(s.Owner), session: s, resumed: true, abandoned: st.Tries >= maxTries}
	return out, c.publish(ctx, eventRow{Event: Event{Type: TurnResumed, Input: st.Taken}})
}

// takeInput takes the first input that was not cancelled from the inbox. It
// returns nil if there is none.
func (c *conversationTx) takeInput(ctx context.Context, s store.Session, st state) (*job, error) {
	all, err := readInputs(ctx, c.Events, c.id, st.Taken)
	if err != nil {
		return nil, err
	}
	cancelled := int64(0) // number of the last cancellation, which affects all inputs before it
	for _, in := range all {
		if in.Kind == cancelNote {
			cancelled = in.seq
		}
	}
	st.Tries = 0
	var told []eventRow
	var next *input
	for i, in := range all {
		st.Taken = in.seq
		switch {
		case in.Kind.isNote():
			continue
		case in.seq < cancelled:
			told = append(told, eventRow{Event: Event{Type: TurnEnded, Input: in.seq, Reason: Cancelled}})
			continue
		}
		next, st.Running = &all[i], true
		told = append(told, eventRow{Event: Event{Type: TurnStarted, Input: in.seq}})
		break
	}
	if err := c.setState(ctx, s, st); err != nil {
		return nil, err
	}
	if err := c.publish(ctx, told...); err != nil || next == nil {
		return nil, err
	}
	return &job{input: *next, owner: account.UserID(s.Owner), session: s}, nil
}

// adoptBatch is the maximum number of conversations that a node adopts at once, so
// that several nodes share the conversations of a crashed node.
const adoptBatch = 8

// adoptExpired concurrently continues the conversations of nodes that crashed or
// hang.
func (e *Engine) adoptExpired(ctx context.Context) error {
	for {
		reserved := 0
		for reserved < adoptBatch && e.addWorker() {
			reserved++
		}
		if reserved == 0 {
			return nil
		}
		asking, stop := context.WithTimeout(ctx, e.opts.Lease)
		adopted, err := e.db.Leases.AcquireExpired(asking, e.node, e.opts.Lease, reserved)
		stop()
		for _, l := range adopted {
			e.startWorker(l.Name, l, nil)
		}
		for range reserved - len(adopted) {
			e.removeWorker()
		}
		if err != nil || len(adopted) < reserved {
			return err
		}
	}
}

// reclaimLeases ends the leases of the process that previously ran on this
// node. If that fails, the leases expire.
func (e *Engine) reclaimLeases(ctx context.Context) {
	if e.opts.Predecessor == "" {
		return
	}
	ctx, stop := context.WithTimeout(ctx, e.opts.Lease)
	defer stop()
	n, err := e.db.Leases.ExpireNode(ctx, e.opts.Predecessor)
	if err != nil {
		e.opts.Logger.Warn("cannot reclaim the conversations of this node's last process; they continue when its leases expire", "error", err)
	} else if n > 0 {
		e.opts.Logger.Info("reclaimed the conversations of this node's last process", "conversations", n)
	}
}
