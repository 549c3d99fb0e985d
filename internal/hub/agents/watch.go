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

// DisabledError reports that skills are disabled. If Unread is set, they are
// disabled because the settings have been unreadable for too long.
type DisabledError struct{ Unread bool }

func (e *DisabledError) Error() string {
	if e.Unread {
		return "skills are switched off: cannot read settings"
	}
	return "skills are switched off"
}

// watchers tracks the active WatchFilter calls on this node.
type watchers struct {
	woken chan struct{} // capacity 1

	mu  sync.Mutex
	all map[*watcher]bool
}

// watcher is the registration of a WatchFilter call.
type watcher struct {
	in     []store.Namespace
	notify func(catalog.Filter, error)

	mu       sync.Mutex // held during notify
	last     catalog.Filter
	notified bool
	stopped  bool
}

// wake makes [Registry.Run] read the settings immediately.
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

// update notifies the watcher that its filter may have changed.
func (w *watcher) update(f catalog.Filter, why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.updateLocked(f, why)
}

// setInitial sets the initial filter, unless the watcher has already received a
// newer one.
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

// Run calls the functions registered with [Registry.WatchFilter] when settings
// change. It reads the settings after each bus notification and every
// [Options.Poll]. When ctx is done, it waits for its goroutines to finish and returns
// the cause.
//
// While the settings cannot be read, the last known settings stay in effect. After
// [Options.FailClosedAfter], skills are disabled until the settings can be read
// again.
func (r *Registry) Run(ctx context.Context) error {
	var noted <-chan struct{}
	if r.opts.Bus != nil {
		notes := r.opts.Bus.Subscribe(SettingsStream)
		defer notes.Close()
		noted = notes.Ready()
	}
	tick := time.NewTicker(r.opts.Poll)
	defer tick.Stop()
	var seen int64 = -1   // last revision sent to the watchers
	var failing time.Time // time of the first failed read
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
				r.opts.Logger.Error("skills are switched off: cannot read settings", "error", err)
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
		case <-noted: // refresh determines what changed
		case <-r.watch.woken:
		}
	}
}

// refreshTimeout is the timeout for reading the settings.
const refreshTimeout = 5 * time.Second

// refresh notifies watchers if the revision of the settings differs from seen.
// It returns the current revision.
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

// WatchFilter calls f with the result of [Registry.Filter]. After each change,
// the goroutine of [Registry.Run] calls f again. If the settings cannot be read,
// f receives the error and a filter that disables all skills. f must not block
// or call stop. It is not called after stop returns.
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
	// Register before reading, so that no change is missed.
	now, err := r.Filter(ctx, in...)
	if err != nil {
		stop()
		return nil, err
	}
	w.setInitial(now)
	return stop, nil
}

// WithKillSwitch returns a context that is cancelled when skills are disabled for
// the hub or one of the namespaces, such as [Profile.SettingsNamespaces]. The
// cause is a [*DisabledError]. WithKillSwitch returns that error if skills are
// already disabled. The caller must call stop, which also cancels the context.
func (r *Registry) WithKillSwitch(ctx context.Context, in ...store.Namespace) (held context.Context, stop func(), err error) {
	held, cancel := context.WithCancelCause(ctx)
	unfollow, err := r.WatchFilter(ctx, in, func(f catalog.Filter, why error) {
		if f.Disabled {
			cancel(&DisabledError{Unread: why != nil})
		}
	})
	if err != nil {
		cancel(err)
		return nil, nil, fmt.Errorf("read skill settings: %w", err)
	}
	stop = func() { unfollow(); cancel(context.Canceled) }
	if err := context.Cause(held); err != nil {
		stop()
		return nil, nil, err
	}
	return held, stop, nil
}
