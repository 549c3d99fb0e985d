// Package lease starts runs and calls that a grant permits, and cancels runs
// whose grant expires or is revoked.
//
// It never decides whether something is permitted; package policy does.
//
// Start reading at [Acquire].
package lease

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

// defaultInterval is how often a run checks its grant.
const defaultInterval = 200 * time.Millisecond

// Check returns nil if a new decision would still permit everything that g
// permits: the newest applicable grant has the same dependencies and covers g.
// Otherwise it returns an error. The error is [policy.ErrNotGranted] if the
// grant is known to be gone.
func Check(ctx context.Context, s policy.Store, g policy.Grant) error {
	now, err := Find(ctx, s, g.Principal, g.Subject, g.Session, g.Needs)
	switch {
	case err != nil:
		return err
	case !now.NeedsExactly(g.Needs):
		return fmt.Errorf("%s was approved again with other dependencies: %w", g.Name, policy.ErrNotGranted)
	case !now.Permissions.Covers(g.Permissions):
		return fmt.Errorf("%s was approved again with fewer permissions: %w", g.Name, policy.ErrNotGranted)
	}
	return nil
}

// NeedsFinder is an optional interface of a [policy.Store] in which each skill
// is approved individually. To find a grant, such a store must know the
// dependencies of a run.
type NeedsFinder interface {
	// FindWith is like Find of [policy.Store] for a run with the given
	// dependencies. If all of them are approved, the grant lists them.
	FindWith(ctx context.Context, p policy.Principal, subject policy.Digest, session string, needs []policy.Need) (*policy.Grant, error)
}

// GroupChecker is an optional interface of a [policy.Store] that can check several
// grants with fewer queries than [Check].
type GroupChecker interface {
	// AreGranted reports whether [Check] would currently succeed for each of the
	// grants. It may return false if it does not know; then Check is called.
	AreGranted(ctx context.Context, all []policy.Grant) bool
}

// NotGrantedError reports why no grant in a store applies and what the user can
// do. It matches [policy.ErrNotGranted].
type NotGrantedError struct{ Reason, Hint string }

func (e *NotGrantedError) Error() string { return e.Reason }

// Is reports whether target is [policy.ErrNotGranted].
func (e *NotGrantedError) Is(target error) bool { return target == policy.ErrNotGranted }

// Find returns a grant for a run with the given dependencies. If s is a
// [NeedsFinder], the error may be a [*NotGrantedError].
func Find(ctx context.Context, s policy.Store, p policy.Principal, subject policy.Digest, session string, needs []policy.Need) (*policy.Grant, error) {
	if n, ok := s.(NeedsFinder); ok {
		return n.FindWith(ctx, p, subject, session, needs)
	}
	return s.Find(ctx, p, subject, session)
}

// Acquire starts a run that g permits. The returned context is cancelled when g
// expires, and within interval (0 means 200 ms) after [Check] fails. The cause
// of the context is then the reason. The caller must call stop when the run
// ends, and must not modify g before stop returns; stop waits for the goroutine
// that checks the grant.
//
// If g is valid for a single run, Acquire consumes it: it revokes the grant, or
// returns [policy.ErrNotGranted] if another run consumed it. Such a run is
// cancelled only when the grant expires.
func Acquire(ctx context.Context, s policy.Store, g policy.Grant, interval time.Duration) (held context.Context, stop func(), err error) {
	all := NewGroup(ctx, s, interval)
	if err := all.Add(ctx, g); err != nil {
		all.Close()
		return nil, nil, err
	}
	return all.Context(), all.Close, nil
}

// Group holds grants that permit one run together, such as a command that uses
// several skills. One goroutine checks all of them. A Group is safe for concurrent
// use. Use [NewGroup] to create one, and close it when the run ends.
type Group struct {
	store    policy.Store
	interval time.Duration
	ctx      context.Context
	cancel   context.CancelCauseFunc
	watching sync.WaitGroup

	mu     sync.Mutex // guards grants
	grants []policy.Grant
}

// NewGroup returns an empty group. Its context is cancelled as that of [Acquire],
// if any of its grants expires or fails a check.
func NewGroup(ctx context.Context, s policy.Store, interval time.Duration) *Group {
	if interval <= 0 {
		interval = defaultInterval
	}
	g := &Group{store: s, interval: interval}
	g.ctx, g.cancel = context.WithCancelCause(ctx)
	return g
}

// Context returns the context of the group. After Close, its cause is
// [context.Canceled].
func (g *Group) Context() context.Context { return g.ctx }

// Add adds a grant, which the caller must not modify before Close returns. Like
// [Acquire], it consumes a grant for a single run, and returns an error if the
// grant is no longer valid; the group is then unchanged. Do not call it after
// Close.
func (g *Group) Add(ctx context.Context, grant policy.Grant) error {
	if err := Consume(ctx, g.store, grant); err != nil {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	g.grants = append(g.grants, grant)
	if len(g.grants) == 1 {
		g.watching.Go(func() {
			if err := g.watch(); err != nil {
				g.cancel(err)
			}
		})
	}
	return nil
}

// Close cancels the context, and waits for the goroutine that checks the grants.
// It may be called more than once.
func (g *Group) Close() {
	g.cancel(context.Canceled)
	g.watching.Wait()
}

// Consume checks g at the start of a run or call that g permits. It returns an
// error if [Check] does. If g is valid for a single use, Consume revokes it: of
// several concurrent callers, only one succeeds and the others get
// [policy.ErrNotGranted].
func Consume(ctx context.Context, s policy.Store, g policy.Grant) error {
	if err := Check(ctx, s, g); err != nil || g.Scope != policy.Once {
		return err
	}
	gone, err := s.Revoke(ctx, g.ID)
	if err == nil && gone[0].ID != g.ID { // a skill has the same name as the ID
		return fmt.Errorf("approval of %s was already used: %w", g.Name, policy.ErrNotGranted)
	}
	return err
}

// watch polls the grants until one of them expires or fails the check. It returns
// nil if the context is done first.
func (g *Group) watch() error {
	for {
		select {
		case <-g.ctx.Done():
			return nil
		case <-time.After(g.timeUntilCheck()):
		}
		g.mu.Lock()
		grants := g.grants
		g.mu.Unlock()
		if err := g.check(grants); err != nil {
			return err
		}
	}
}

// timeUntilCheck returns the time until the next check: the interval, or less if a
// grant expires before.
func (g *Group) timeUntilCheck() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	wait := g.interval
	for _, grant := range g.grants {
		if !grant.Expires.IsZero() {
			wait = min(wait, time.Until(grant.Expires))
		}
	}
	return wait
}

// check checks grants once.
func (g *Group) check(grants []policy.Grant) error {
	now := time.Now()
	var reusable []policy.Grant
	for _, grant := range grants {
		if grant.Expired(now) {
			return fmt.Errorf("approval of %s expired at %s: %w", grant.Name, grant.Expires.Format(time.RFC3339), policy.ErrNotGranted)
		}
		if grant.Scope != policy.Once {
			reusable = append(reusable, grant)
		}
	}
	if s, ok := g.store.(GroupChecker); ok && s.AreGranted(g.ctx, reusable) {
		return nil
	}
	for _, grant := range reusable {
		if err := Check(g.ctx, g.store, grant); err != nil && g.ctx.Err() == nil {
			return fmt.Errorf("approval of %s was revoked or is unreadable: %w", grant.Name, err)
		}
	}
	return nil
}
