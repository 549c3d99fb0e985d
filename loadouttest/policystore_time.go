package loadouttest

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/policy"
)

func testExpiry(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Expires = time.Now().Add(time.Hour)
	putGrant(t, s, g)
	time.Sleep(time.Hour - time.Nanosecond)
	findGrant(t, s, robot, g.Subject, "")
	time.Sleep(time.Nanosecond)
	checkNoGrant(t, s, robot, g.Subject, "")
	if got := listGrants(t, s); len(got) != 1 || !got[0].Expired(time.Now()) {
		t.Errorf("listed %v, want the expired grant", got)
	}
}

func testDefaultExpiry(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	putGrant(t, s, g)
	g.Scope, g.Session = policy.ForSession, "s1"
	putGrant(t, s, g)
	g.Scope = policy.Once
	putGrant(t, s, g)
	time.Sleep(24 * time.Hour)
	if got := findGrant(t, s, robot, g.Subject, "s1"); got.Scope != policy.Always {
		t.Errorf("after a day, the grant for %s applies, want the permanent one", got.Scope)
	}
}

func testRetention(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Expires = time.Now().Add(time.Hour)
	putGrant(t, s, g)
	time.Sleep(time.Hour + 30*24*time.Hour - 1)
	putGrant(t, s, grant(digest("b")))
	if got := listGrants(t, s); len(got) != 2 {
		t.Errorf("just before 30 days: %d grants, want both", len(got))
	}
	time.Sleep(time.Nanosecond)
	putGrant(t, s, grant(digest("c")))
	if got := listGrants(t, s); len(got) != 2 || got[0].Subject != digest("b") {
		t.Errorf("after 30 days: %v, want the other two", grantNames(got))
	}
}

func testLeaseRevocation(t *testing.T, s policy.Store) {
	g := putGrant(t, s, grant(digest("a")))
	ctx := acquireLease(t, s, g, 200*time.Millisecond)
	time.Sleep(time.Minute)
	synctest.Wait()
	checkLeaseActive(t, ctx)
	if _, err := s.Revoke(t.Context(), g.ID); err != nil {
		t.Fatal(err)
	}
	since := time.Now()
	<-ctx.Done()
	if d := time.Since(since); d > 200*time.Millisecond {
		t.Errorf("the lease ended %s after the revocation, want at most 200ms", d)
	}
	checkLeaseEnded(t, ctx)
}

func testLeaseExpiry(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Expires = time.Now().Add(time.Hour + 7*time.Millisecond)
	g = putGrant(t, s, g)
	ctx := acquireLease(t, s, g, time.Second)
	<-ctx.Done()
	if late := time.Since(g.Expires); late != 0 {
		t.Errorf("the lease ended %s after the grant expired", late)
	}
	checkLeaseEnded(t, ctx)
}

func testStoppedLease(t *testing.T, s policy.Store) {
	g := putGrant(t, s, grant(digest("a")))
	ctx, stop, err := lease.Acquire(t.Context(), s, g, 0)
	if err != nil {
		t.Fatal(err)
	}
	time.Sleep(time.Minute)
	checkLeaseActive(t, ctx)
	stop()
	if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("cause after stop: %v", err)
	}
}

func testOneTimeLease(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Scope, g.Expires = policy.Once, time.Now().Add(time.Hour)
	g = putGrant(t, s, g)
	ctx := acquireLease(t, s, g, time.Second)
	time.Sleep(time.Hour - 1)
	synctest.Wait()
	checkLeaseActive(t, ctx)
	time.Sleep(time.Nanosecond)
	synctest.Wait()
	checkLeaseEnded(t, ctx)
}

func testOneTimeGrant(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Scope = policy.Once
	g = putGrant(t, s, g)
	acquireLease(t, s, g, time.Hour)
	checkNoGrant(t, s, robot, g.Subject, "")
	if _, _, err := lease.Acquire(t.Context(), s, g, time.Hour); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("second run: %v, want %v", err, policy.ErrNotGranted)
	}
	putGrant(t, s, grant(digest("a"))) // scope Always, so that only the one-time grant is used up
	if _, _, err := lease.Acquire(t.Context(), s, g, time.Hour); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("second run beside a permanent grant: %v, want %v", err, policy.ErrNotGranted)
	}
}

func testNarrowedLease(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Permissions.Network = []string{"example.com"}
	wide := putGrant(t, s, g)
	ctx := acquireLease(t, s, wide, time.Millisecond)
	g.Permissions.Network = []string{"example.com", "example.org"}
	putGrant(t, s, g)
	if err := lease.Check(t.Context(), s, wide); err != nil {
		t.Errorf("after an approval for more: %v", err)
	}
	putGrant(t, s, grant(digest("a")))
	<-ctx.Done()
	checkLeaseEnded(t, ctx)
}

func testNeeds(t *testing.T, s policy.Store) {
	g := grant(digest("a"))
	g.Needs = []policy.Need{{Name: "csv", Digest: digest("c")}}
	g = putGrant(t, s, g)
	if err := lease.Check(t.Context(), s, g); err != nil {
		t.Error(err)
	}
	putGrant(t, s, grant(digest("a")))
	if err := lease.Check(t.Context(), s, g); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("after an approval without needs: %v, want %v", err, policy.ErrNotGranted)
	}
}

func acquireLease(t *testing.T, s policy.Store, g policy.Grant, interval time.Duration) context.Context {
	t.Helper()
	ctx, stop, err := lease.Acquire(t.Context(), s, g, interval)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	return ctx
}

func checkLeaseActive(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := context.Cause(ctx); err != nil {
		t.Errorf("the lease ended: %v", err)
	}
}

func checkLeaseEnded(t *testing.T, ctx context.Context) {
	t.Helper()
	if err := context.Cause(ctx); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("the lease ended with %v, want %v", err, policy.ErrNotGranted)
	}
}
