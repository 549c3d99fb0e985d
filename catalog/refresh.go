package catalog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/loadout-dev/loadout/skill"
)

// pending is the state of a source that is still being read after
// [Options.Wait], or after its file system did not respond.
type pending uint8

const (
	notPending  pending = iota
	readPending         // being read
	readAgain           // being read, and must be read again because it may have changed
)

// refresh reads the given sources and publishes their skills; see
// [Catalog.Reload].
func (c *Catalog) refresh(ctx context.Context, which []*sourceState) error {
	c.reload.Lock()
	defer c.reload.Unlock()
	c.state.Lock()
	c.started = true
	c.state.Unlock()
	var r *reading
	if !c.filter.Load().disabled {
		r = c.read(ctx, c.idle(which))
		if c.wait == 0 {
			<-r.done
		} else {
			r.waitUntil(ctx, time.After(c.wait))
		}
	}
	c.state.Lock()
	defer c.state.Unlock()
	first := c.current.Load().Version == 0
	changed := first
	if ctx.Err() != nil {
		if r != nil && c.wait > 0 && r.detach(ctx) && !first {
			c.publish(c.build())
		}
		return fmt.Errorf("read skill sources: %w", context.Cause(ctx))
	}
	if r != nil {
		changed = r.detach(ctx) || changed
	}
	if changed {
		c.publish(c.build())
	}
	return nil
}

// idle returns those of the sources that are not being read. It marks the
// others to be read again.
func (c *Catalog) idle(which []*sourceState) []*sourceState {
	c.state.Lock()
	defer c.state.Unlock()
	return slices.DeleteFunc(slices.Clone(which), func(s *sourceState) bool {
		if s.pending == notPending {
			return false
		}
		s.pending = readAgain
		return true
	})
}

// reading is a concurrent read of sources. A refresh may stop waiting for it.
// The results of sources that are still being read are then published one by
// one.
type reading struct {
	c     *Catalog
	which []*sourceState
	done  chan struct{} // closed when all sources were read

	mu       sync.Mutex // guards the fields below
	results  []*listResult
	left     int
	detached bool
}

// layered is a listing with its entries grouped into layers.
type layered struct {
	entries  []*Entry // by directory; nil if isShared
	layers   []*Layer
	problems []Problem
	isShared bool // whether the layers come from [Listing.Layer]
}

// listResult holds the results of [Source.List].
type listResult struct {
	listing Listing
	err     error
	took    time.Duration
}

// read starts reading the given sources. Without [Options.Wait], it reads up to
// four at a time; with it, all at once, so that a slow source does not delay
// the others. Because a project determines the number of its sources, these
// share a budget, and across all projects at most one source per CPU is read at
// a time.
func (c *Catalog) read(ctx context.Context, which []*sourceState) *reading {
	r := &reading{c: c, which: which, done: make(chan struct{}), results: make([]*listResult, len(which)), left: len(which)}
	most := 4
	if c.wait > 0 {
		ctx, most = context.WithoutCancel(ctx), max(1, len(which)) // a slow source is read to its end
	}
	var inProjects, others []int          // indexes in which
	budgets := map[string]*sharedBudget{} // by project
	for at, s := range which {
		if d, ok := s.source.(*dirSource); ok && d.opts.Within != "" {
			inProjects = append(inProjects, at)
			if budgets[d.opts.Within] == nil {
				budgets[d.opts.Within] = &sharedBudget{}
			}
			budgets[d.opts.Within].add(d)
		} else {
			others = append(others, at)
		}
	}
	maps.DeleteFunc(budgets, func(_ string, b *sharedBudget) bool { return b.sources == 1 })
	r.start(ctx, inProjects, min(most, runtime.GOMAXPROCS(0)), budgets)
	r.start(ctx, others, most, nil)
	if len(which) == 0 {
		close(r.done)
	}
	return r
}

// start reads the sources with the given indexes in r.which, in order and up
// to limit of them concurrently. budgets holds the budgets of their projects.
func (r *reading) start(ctx context.Context, indexes []int, limit int, budgets map[string]*sharedBudget) {
	var next atomic.Int64
	for range min(limit, len(indexes)) {
		go func() {
			for n := next.Add(1); n <= int64(len(indexes)); n = next.Add(1) {
				at := indexes[n-1]
				var shared *sharedBudget
				if d, ok := r.which[at].source.(*dirSource); ok {
					shared = budgets[d.opts.Within]
				}
				r.finish(ctx, at, r.which[at].list(ctx, shared))
			}
		}()
	}
}

// list reads a source. shared may be nil.
func (s *sourceState) list(ctx context.Context, shared *sharedBudget) *listResult {
	start := time.Now()
	var l Listing
	var err error
	switch src := s.source.(type) {
	case *dirSource:
		l, err = src.list(ctx, shared)
	default:
		l, err = src.List(ctx)
	}
	return &listResult{l, err, max(1, time.Since(start))}
}

// waitUntil returns once all sources have been read, ctx is done or timeout
// fires.
func (r *reading) waitUntil(ctx context.Context, timeout <-chan time.Time) {
	select {
	case <-r.done:
	case <-timeout:
	case <-ctx.Done():
	}
}

// finish processes the result of the source r.which[at]. If the refresh no
// longer waits for r, finish publishes the result.
func (r *reading) finish(ctx context.Context, at int, res *listResult) {
	r.mu.Lock()
	late := r.detached
	if !late {
		r.results[at] = res
		if r.left--; r.left == 0 {
			close(r.done)
		}
	}
	r.mu.Unlock()
	for late {
		if late = r.c.publishLate(ctx, r.which[at], res); late {
			res = r.which[at].list(ctx, nil)
		}
	}
}

// publishLate publishes the result of a source. It reports whether the source
// must be read again.
func (c *Catalog) publishLate(ctx context.Context, s *sourceState, res *listResult) (again bool) {
	c.state.Lock()
	defer c.state.Unlock()
	if !slices.Contains(c.sources.Load().all, s) {
		return false // it was removed
	}
	_, blocked := errors.AsType[*blockedError](res.err)
	again = s.pending == readAgain && !blocked
	s.pending = notPending
	if again {
		s.pending = readPending
	}
	if c.storeResult(ctx, s, res) {
		c.publish(c.build())
	}
	return again
}

// detach stores the results and marks the other sources as pending. It reports
// whether anything changed. It must be called with c.state held.
func (r *reading) detach(ctx context.Context) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detached = true
	for at, s := range r.which {
		if res := r.results[at]; res != nil {
			changed = r.c.storeResult(ctx, s, res) || changed
			continue
		}
		s.pending = readPending
		changed = changed || s.duration == 0
	}
	return changed
}

// storeResult stores the result of a source. It reports whether the result
// differs from the previous one, or is the first one. A source that does not respond is pending until
// it does. storeResult must be called with c.state held.
func (c *Catalog) storeResult(ctx context.Context, s *sourceState, a *listResult) bool {
	if blocked, ok := errors.AsType[*blockedError](a.err); ok {
		s.pending = readPending
		go c.resume(context.WithoutCancel(ctx), s, blocked)
	}
	before, failed, first := s.listing, s.failed, s.duration == 0
	s.duration, s.failed = a.took, a.err
	if a.err != nil {
		return first || failed == nil || failed.Error() != a.err.Error()
	}
	now, same := before.update(a)
	s.listing = now
	return first || failed != nil || !same || !slices.Equal(before.problems, now.problems)
}

// update returns the listing that results from reading the source again. same
// reports whether the skills are unchanged; the returned listing then has the
// index of l.
func (l layered) update(a *listResult) (updated layered, same bool) {
	updated = layered{problems: a.listing.Problems}
	if layer := a.listing.Layer; layer != nil {
		updated.layers, updated.isShared = []*Layer{layer}, true
		return updated, len(l.layers) == 1 && l.layers[0].equal(layer)
	}
	updated.entries = a.listing.Entries
	if !slices.IsSortedFunc(updated.entries, byDir) {
		slices.SortStableFunc(updated.entries, byDir)
	}
	reuse(l.entries, updated.entries)
	if slices.Equal(l.entries, updated.entries) {
		updated.entries, updated.layers = l.entries, l.layers
		return updated, true
	}
	updated.layers = layersOf(updated.entries)
	return updated, false
}

// unreadProblem returns the problem to report for a source that has not been read
// yet. waited is how long the last reload waited for it.
func (s *sourceState) unreadProblem(waited time.Duration) skill.Diagnostic {
	if s.pending == notPending {
		return skill.Diagnostic{Severity: skill.Warning, Code: "still-reading", Message: "not searched yet; its skills are added when they are found"}
	}
	return skill.Diagnostic{Severity: skill.Warning, Code: "still-reading",
		Message: fmt.Sprintf("still being searched after %v; its skills are added when they are found", waited),
		Fix:     "point the source at a smaller directory, or at one on a faster disk"}
}
