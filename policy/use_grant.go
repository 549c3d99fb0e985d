package policy

import (
	"context"
	"fmt"
	"time"
)

// CheckGrant returns nil if a new decision would still permit everything that g
// permits: the newest applicable grant has the same dependencies and covers g.
// Otherwise it returns an error, which is [ErrNotGranted] if the grant is known
// to be gone.
func CheckGrant(ctx context.Context, r Reader, g Grant) error {
	now, err := findWith(ctx, r, g.Principal, g.Subject, g.Session, g.Needs)
	switch {
	case err != nil:
		return err
	case !now.NeedsExactly(g.Needs):
		return fmt.Errorf("%s was approved again with other dependencies: %w", g.Name, ErrNotGranted)
	case !now.Permissions.Covers(g.Permissions):
		return fmt.Errorf("%s was approved again with fewer permissions: %w", g.Name, ErrNotGranted)
	}
	return nil
}

// AcquireGrant begins a run that g permits. The returned context is cancelled,
// with the reason as its cause, when g expires, and within the interval (0
// means 200 ms) after [CheckGrant] fails. The caller must call stop at the end
// of the run; stop waits for the goroutine to end.
//
// AcquireGrant consumes a grant for one run: it revokes the grant, or returns
// [ErrNotGranted] if another run consumed it. Such a run ends only when the
// grant expires.
func AcquireGrant(ctx context.Context, s Store, g Grant, interval time.Duration) (held context.Context, stop func(), err error) {
	if interval <= 0 {
		interval = defaultInterval
	}
	g = g.clone()
	if err := ConsumeGrant(ctx, s, g); err != nil {
		return nil, nil, err
	}
	held, cancel := context.WithCancelCause(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		if err := watchGrant(held, s, g, interval); err != nil {
			cancel(err)
		}
	}()
	return held, func() { cancel(context.Canceled); <-done }, nil
}

// ConsumeGrant begins one run or call that g permits. It returns an error if
// [CheckGrant] does, and consumes a grant for one use: among concurrent callers
// one succeeds and the others get [ErrNotGranted].
func ConsumeGrant(ctx context.Context, s Store, g Grant) error {
	if err := CheckGrant(ctx, s, g); err != nil || g.Scope != Once {
		return err
	}
	gone, err := s.Revoke(ctx, g.ID)
	if err == nil && gone[0].ID != g.ID { // a skill is named like the ID
		return fmt.Errorf("%s was used already: %w", g.Name, ErrNotGranted)
	}
	return err
}

// watchGrant polls the grant until it expires or fails the check. It returns
// nil if ctx ended first.
func watchGrant(ctx context.Context, r Reader, g Grant, interval time.Duration) error {
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
			return fmt.Errorf("approval of %s expired at %s: %w", g.Name, g.Expires.Format(time.RFC3339), ErrNotGranted)
		}
		if g.Scope == Once {
			continue
		}
		if err := CheckGrant(ctx, r, g); err != nil && ctx.Err() == nil {
			return fmt.Errorf("approval of %s was revoked or is unreadable: %w", g.Name, err)
		}
	}
}
