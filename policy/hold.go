package policy

import (
	"context"
	"fmt"
	"time"
)

// Valid returns nil where a new decision would still permit all that g does:
// the newest grant that applies is for the same dependencies and covers it.
// Else it returns an error, which is [ErrNotGranted] where that is known.
func Valid(ctx context.Context, r Reader, g Grant) error {
	now, err := findWith(ctx, r, g.Principal, g.Subject, g.Session, g.Needs)
	switch {
	case err != nil:
		return err
	case !now.NeedsExactly(g.Needs):
		return fmt.Errorf("%s was approved again with other dependencies: %w", g.Name, ErrNotGranted)
	case !now.Allows.Covers(g.Allows):
		return fmt.Errorf("%s was approved again for less: %w", g.Name, ErrNotGranted)
	}
	return nil
}

// Hold begins a run that g permits. It returns a context that ends, with the
// reason as its cause, when g expires, and within the interval (0: 200 ms)
// when it is no longer [Valid], also because that cannot be known. The caller
// calls stop at the end of the run, which waits until nothing of Hold goes on.
//
// A grant for one run is used up by Hold: it is revoked, and where that has
// happened already, Hold fails with [ErrNotGranted]. Such a run ends with the
// expiry alone.
func Hold(ctx context.Context, s Store, g Grant, interval time.Duration) (held context.Context, stop func(), err error) {
	if interval <= 0 {
		interval = defaultInterval
	}
	g = g.clone()
	if err := Use(ctx, s, g); err != nil {
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

// Use begins one run or call that g permits. It fails where g is not [Valid], and
// uses up a grant for one of them: of callers at the same time one gets it, and
// the others [ErrNotGranted].
func Use(ctx context.Context, s Store, g Grant) error {
	if err := Valid(ctx, s, g); err != nil || g.Scope != Once {
		return err
	}
	gone, err := s.Revoke(ctx, g.ID)
	if err == nil && gone[0].ID != g.ID { // a skill has the ID for its name
		return fmt.Errorf("%s was used: %w", g.Name, ErrNotGranted)
	}
	return err
}

// watch returns nil where ctx ended first.
func watch(ctx context.Context, r Reader, g Grant, interval time.Duration) error {
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
			return fmt.Errorf("the approval of %s expired at %s: %w", g.Name, g.Expires.Format(time.RFC3339), ErrNotGranted)
		}
		if g.Scope == Once {
			continue
		}
		if err := Valid(ctx, r, g); err != nil && ctx.Err() == nil {
			return fmt.Errorf("the approval of %s was withdrawn, or cannot be read: %w", g.Name, err)
		}
	}
}
