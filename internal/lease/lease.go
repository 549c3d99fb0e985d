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
	if interval <= 0 {
		interval = defaultInterval
	}
	if err := Consume(ctx, s, g); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := watch(held, s, g, interval); err != nil {
			cancel(err)
		}
	}()
	return held, func() { cancel(context.Canceled); <-done }, nil
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

// watch polls the grant until it expires or fails the check. It returns nil if
// ctx is done first.
func watch(ctx context.Context, s policy.Store, g policy.Grant, interval time.Duration) error {
	for {
		wait := interval
		if !g.Expires.IsZero() {
			wait = min(wait, time.Until(g.Expires))
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(wait):
		}
		if g.Expired(time.Now()) {
			return fmt.Errorf("approval of %s expired at %s: %w", g.Name, g.Expires.Format(time.RFC3339), policy.ErrNotGranted)
		}
		if g.Scope == policy.Once {
			continue
		}
		if err := Check(ctx, s, g); err != nil && ctx.Err() == nil {
			return fmt.Errorf("approval of %s was revoked or is unreadable: %w", g.Name, err)
		}
	}
}
