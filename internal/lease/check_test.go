package lease_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/policy"
)

func runGrant() policy.Grant {
	return policy.Grant{ID: "1", Principal: policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}, Subject: policy.Digest("sha256:" + strings.Repeat("a", 64)),
		Name: "pdf", Permissions: policy.Permissions{Run: true, Network: []string{"example.com"}}, Scope: policy.Always,
		Needs: []policy.Need{{Name: "csv", Digest: policy.Digest("sha256:" + strings.Repeat("b", 64))}}, By: policy.Principal{ID: "ann", Kind: policy.UserPrincipal}}
}

// A run ends when a newer approval no longer covers it.
func TestCheck(t *testing.T) {
	for name, tt := range map[string]struct {
		change func(*policy.Grant)
		want   string // in the error; "" for none
	}{
		"the same":             {func(*policy.Grant) {}, ""},
		"more permissions":     {func(g *policy.Grant) { g.Permissions.WorkspaceWrite = true }, ""},
		"fewer permissions":    {func(g *policy.Grant) { g.Permissions.Network = nil }, "pdf was approved again with fewer permissions"},
		"without dependencies": {func(g *policy.Grant) { g.Needs = nil }, "pdf was approved again with other dependencies"},
	} {
		now := runGrant()
		tt.change(&now)
		s := &breaking{grant: &now}
		err := lease.Check(t.Context(), s, runGrant())
		if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want) || !errors.Is(err, policy.ErrNotGranted)) {
			t.Errorf("%s: %v, want %q", name, err, tt.want)
		}
		if _, _, err := lease.Acquire(t.Context(), s, runGrant(), 0); (err == nil) != (tt.want == "") {
			t.Errorf("%s: acquired with %v", name, err)
		}
	}
}

// finder is a store that needs to know the dependencies.
type finder struct {
	breaking
	needs []policy.Need
}

func (f *finder) FindWith(_ context.Context, _ policy.Principal, _ policy.Digest, _ string, needs []policy.Need) (*policy.Grant, error) {
	f.needs = needs
	return nil, &lease.NotGrantedError{Reason: "csv is not approved", Hint: "approve csv"}
}

func TestFindWithDependencies(t *testing.T) {
	g, s := runGrant(), &finder{}
	err := lease.Check(t.Context(), s, g)
	if !errors.Is(err, policy.ErrNotGranted) || errors.Is(err, context.Canceled) || err.Error() != "csv is not approved" || len(s.needs) != 1 {
		t.Errorf("error is %v, for the dependencies %v", err, s.needs)
	}
}

// A run ends at the moment its approval expires, even if it was used up.
func TestLeaseEndsWhenTheGrantExpires(t *testing.T) {
	for _, scope := range []policy.Scope{policy.Always, policy.Once} {
		synctest.Test(t, func(t *testing.T) {
			g := runGrant()
			g.Scope, g.Expires = scope, time.Now().Add(1500*time.Millisecond)
			s := &once{breaking: breaking{grant: &g, err: policy.ErrNotGranted}}
			start := time.Now()
			ctx, stop, err := lease.Acquire(t.Context(), s, g, time.Second)
			if err != nil {
				t.Fatal(err)
			}
			defer stop()
			if scope == policy.Once {
				s.broken.Store(true) // it is consumed, and so not found any more
			}
			<-ctx.Done()
			err = context.Cause(ctx)
			if time.Since(start) != 1500*time.Millisecond || !errors.Is(err, policy.ErrNotGranted) || !strings.HasPrefix(err.Error(), "approval of pdf expired at ") {
				t.Errorf("scope %s: ended after %v by %v", scope, time.Since(start), err)
			}
		})
	}
}

// Without an interval, a revocation ends the run within 200 ms. A run that ends
// itself has no error.
func TestLeaseInterval(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := runGrant()
		s := &breaking{grant: &g, err: policy.ErrNotGranted}
		for _, interval := range []time.Duration{0, -1} {
			s.broken.Store(false)
			ctx, stop, err := lease.Acquire(t.Context(), s, g, interval)
			if err != nil {
				t.Fatal(err)
			}
			start := time.Now()
			s.broken.Store(true)
			<-ctx.Done()
			if d := time.Since(start); d != 200*time.Millisecond {
				t.Errorf("interval %v: ended after %v", interval, d)
			}
			stop()
		}
		s.broken.Store(false)
		ctx, stop, err := lease.Acquire(t.Context(), s, g, 0)
		if err != nil {
			t.Fatal(err)
		}
		stop()
		if err := context.Cause(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("stopped: %v", err)
		}
	})
}
