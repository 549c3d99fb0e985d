package policytest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/policy"
)

func expiry(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Expires = time.Now().Add(time.Hour)
	put(t, s, g)
	time.Sleep(time.Hour - time.Nanosecond)
	find(t, s, Robot, g.Subject, "")
	time.Sleep(time.Nanosecond)
	missing(t, s, Robot, g.Subject, "")
	if got := list(t, s); len(got) != 1 || !got[0].Expired(time.Now()) {
		t.Errorf("listed %v, want the grant, as expired", got)
	}
}

func defaultExpiry(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	put(t, s, g)
	g.Scope, g.Session = policy.ForSession, "s1"
	put(t, s, g)
	g.Scope = policy.Once
	put(t, s, g)
	time.Sleep(24 * time.Hour)
	if got := find(t, s, Robot, g.Subject, "s1"); got.Scope != policy.Always {
		t.Errorf("after a day the grant for %s applies, want that for always", got.Scope)
	}
}

func forgotten(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Expires = time.Now().Add(time.Hour)
	put(t, s, g)
	time.Sleep(time.Hour + 30*24*time.Hour - 1)
	put(t, s, Grant(Digest("b")))
	if got := list(t, s); len(got) != 2 {
		t.Errorf("just before 30 days there are %d grants, want both", len(got))
	}
	time.Sleep(time.Nanosecond)
	put(t, s, Grant(Digest("c")))
	if got := list(t, s); len(got) != 2 || got[0].Subject != Digest("b") {
		t.Errorf("after 30 days there are %v, want the other two", names(got))
	}
}

func holdRevoked(t *testing.T, s policy.Store) {
	g := put(t, s, Grant(Digest("a")))
	ctx := hold(t, s, g, 200*time.Millisecond)
	time.Sleep(time.Minute)
	synctest.Wait()
	goesOn(t, ctx)
	if _, err := s.Revoke(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	<-ctx.Done()
	if d := time.Since(since); d > 200*time.Millisecond {
		t.Errorf("the run ended %s after the grant was withdrawn, want at most 200ms", d)
	}
	ended(t, ctx)
}

func holdExpired(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Expires = time.Now().Add(time.Hour + 7*time.Millisecond)
	g = put(t, s, g)
	ctx := hold(t, s, g, time.Second)
	<-ctx.Done()
	if late := time.Since(g.Expires); late != 0 {
		t.Errorf("the run ended %s after the grant expired", late)
	}
	ended(t, ctx)
}

func holdStopped(t *testing.T, s policy.Store) {
	g := put(t, s, Grant(Digest("a")))
	ctx, stop, err := policy.AcquireGrant(t.Context(), s, g, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	goesOn(t, ctx)
	stop()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("after stop the cause is %v", err)
	}
}

func holdOnce(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Scope, g.Expires = policy.Once, time.Now().Add(time.Hour)
	g = put(t, s, g)
	ctx := hold(t, s, g, time.Second)
	time.Sleep(time.Hour - 1)
	synctest.Wait()
	goesOn(t, ctx)
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	ended(t, ctx)
}

func once(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Scope = policy.Once
	g = put(t, s, g)
	hold(t, s, g, time.Hour)
	missing(t, s, Robot, g.Subject, "")
	if _, _, err := policy.AcquireGrant(t.Context(), s, g, time.Hour); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("a second run: %v, want %v", err, policy.ErrNotGranted)
	}
	put(t, s, Grant(Digest("a"))) // with scope Always, so that only the single run is used up
	if _, _, err := policy.AcquireGrant(t.Context(), s, g, time.Hour); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("a second run beside a grant for always: %v, want %v", err, policy.ErrNotGranted)
	}
}

func holdLess(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Permissions.Network = []string{"example.com"}
	wide := put(t, s, g)
	ctx := hold(t, s, wide, time.Millisecond)
	g.Permissions.Network = []string{"example.com", "example.org"}
	put(t, s, g)
	if err := policy.CheckGrant(t.Context(), s, wide); err != nil {
		t.Errorf("after it was approved for more: %v", err)
	}
	put(t, s, Grant(Digest("a")))
	<-ctx.Done()
	ended(t, ctx)
}

func needs(t *testing.T, s policy.Store) {
	g := Grant(Digest("a"))
	g.Needs = []policy.Need{{Name: "csv", Digest: Digest("c")}}
	g = put(t, s, g)
	if err := policy.CheckGrant(t.Context(), s, g); err != nil {
		t.Error(err)
	}
	put(t, s, Grant(Digest("a")))
	if err := policy.CheckGrant(t.Context(), s, g); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("after it was approved without needs: %v, want %v", err, policy.ErrNotGranted)
	}
}

func hold(t *testing.T, s policy.Store, g policy.Grant, interval time.Duration) context.Context {
	t.Helper()
	ctx, stop, err := policy.AcquireGrant(t.Context(), s, g, interval)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return ctx
}

func goesOn(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := context.Cause(ctx); err != nil {
		t.Errorf("the run ended: %v", err)
	}
}

func ended(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := context.Cause(ctx); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("the run ended by %v, want %v", err, policy.ErrNotGranted)
	}
}
