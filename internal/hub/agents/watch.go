package agents

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/store"
)

// DisabledError says that skills were switched off, or that it could not be known for
// too long whether they are.
type DisabledError struct{ Unread bool }

func (e *DisabledError) Error() string {
	if e.Unread {
		return "skills are stopped: whether they are switched off cannot be read"
	}
	return "skills were switched off"
}

// watchers are those who follow settings on this node.
type watchers struct {
	woken chan struct{} // has room for one: more say no more

	mu  sync.Mutex
	all map[*watcher]bool
}

// watcher is told of the filter of namespaces.
type watcher struct {
	in     []store.Namespace
	notify func(catalog.Filter, error)

	mu       sync.Mutex // held while it is told
	last     catalog.Filter
	notified bool
	stopped  bool
}

// wake has [Registry.Run] look at once.
func (w *watchers) wake() {
	select {
	case w.woken <- struct{}{}:
	default:
	}
}

func (w *watchers) list() []*watcher {
	w.mu.Lock()
	defer w.mu.Unlock()
	var out []*watcher
	for one := range w.all {
		out = append(out, one)
	}
	return out
}

// update tells a watcher of a filter, where it is another one.
func (w *watcher) update(f catalog.Filter, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updateLocked(f, why)
}

// setInitial is set with what was read when it began, which is old where it was told of
// something since.
func (w *watcher) setInitial(f catalog.Filter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.notified {
		w.updateLocked(f, nil)
	}
}

func (w *watcher) updateLocked(f catalog.Filter, why error) {
	if w.stopped || w.notified && f.Disabled == w.last.Disabled && slices.Equal(f.Allow, w.last.Allow) {
		return
	}
	w.notified, w.last = true, f
	w.notify(f, why)
}

// Run keeps those who [Registry.WatchFilter] up with the settings, until ctx ends: they are
// looked at when the bus says that they changed, and every [Options.Poll]. It returns
// when nothing of it goes on any more, with the reason for which ctx ended.
//
// While settings cannot be read, what was read counts; after [Options.FailClosedAfter] of it
// everybody is told that skills are switched off, until they can be read again.
func (r *Registry) Run(ctx context.Context) error {
	var noted <-chan struct{}
	if r.opts.Bus != nil {
		notes := r.opts.Bus.Subscribe(SettingsStream)
		defer notes.Close()
		noted = notes.Ready()
	}
	tick := time.NewTicker(r.opts.Poll)
	defer tick.Stop()
	var seen int64 = -1   // the revision of which everybody was told
	var failing time.Time // since when
	stopped := false
	for {
		revision, err := r.refresh(ctx, seen)
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case err == nil:
			seen, failing, stopped = revision, time.Time{}, false
		case failing.IsZero():
			failing = time.Now()
		case time.Since(failing) >= r.opts.FailClosedAfter:
			if !stopped {
				r.opts.Logger.Error("skills are stopped: settings cannot be read", "error", err)
			}
			seen, stopped = -1, true
			for _, w := range r.watch.list() {
				w.update(catalog.Filter{Disabled: true}, err)
			}
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		case <-noted: // what the note says the database says better
		case <-r.watch.woken:
		}
	}
}

// refreshTimeout bounds one look at the settings: a database that does not answer is one that
// cannot be read.
const refreshTimeout = 5 * time.Second

// refresh tells those who follow what changed since a revision, and returns the one that
// is.
func (r *Registry) refresh(ctx context.Context, seen int64) (int64, error) {
	ctx, cancel := context.WithTimeout(ctx, refreshTimeout)
	defer cancel()
	revisions, err := r.db.Revisions(ctx)
	if err != nil || revisions[store.SettingsRevision] == seen {
		return seen, err
	}
	watching := r.watch.list()
	in := map[store.Namespace]bool{"": true}
	for _, w := range watching {
		for _, n := range w.in {
			in[n] = true
		}
	}
	filters, err := r.FilterEach(ctx, slices.Collect(maps.Keys(in))...)
	if err != nil {
		return seen, err
	}
	for _, w := range watching {
		w.update(combineFilters(filters, w.in), nil)
	}
	return revisions[store.SettingsRevision], nil
}

// WatchFilter has f told what [Registry.Filter] says of namespaces: now, and from the
// goroutine of [Registry.Run] whenever that changes. The error is nil, or why it cannot
// be known, and then nothing is let through. f must not wait, and not call stop. After
// stop it is not called any more.
func (r *Registry) WatchFilter(ctx context.Context, in []store.Namespace, f func(catalog.Filter, error)) (stop func(), err error) {
	w := &watcher{in: slices.Clone(in), notify: f}
	r.watch.mu.Lock()
	r.watch.all[w] = true
	r.watch.mu.Unlock()
	stop = func() {
		r.watch.mu.Lock()
		delete(r.watch.all, w)
		r.watch.mu.Unlock()
		w.mu.Lock()
		w.stopped = true
		w.mu.Unlock()
	}
	// It is among those who are told before it is asked, so that no change is missed.
	now, err := r.Filter(ctx, in...)
	if err != nil {
		stop()
		return nil, err
	}
	w.setInitial(now)
	return stop, nil
}

// WithKillSwitch returns a context for what is at work for namespaces, as a turn of a conversation
// for those of [Profile.SettingsNamespaces]: it ends, with a [*DisabledError] as its cause, when the
// kill switch of the hub or of one of the groups falls. It fails with that where it has
// fallen. The caller calls stop, which ends it too.
func (r *Registry) WithKillSwitch(ctx context.Context, in ...store.Namespace) (held context.Context, stop func(), err error) {
	held, cancel := context.WithCancelCause(ctx)
	unfollow, err := r.WatchFilter(ctx, in, func(f catalog.Filter, why error) {
		if f.Disabled {
			cancel(&DisabledError{Unread: why != nil})
		}
	})
	if err != nil {
		cancel(err)
		return nil, nil, fmt.Errorf("whether skills are switched off: %w", err)
	}
	stop = func() { unfollow(); cancel(context.Canceled) }
	if err := context.Cause(held); err != nil {
		stop()
		return nil, nil, err
	}
	return held, stop, nil
}
