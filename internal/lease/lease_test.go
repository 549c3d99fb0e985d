package lease_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/policy"
)

// breaking is a store that finds one grant until it breaks.
type breaking struct {
	policy.Store
	grant  *policy.Grant
	broken atomic.Bool
	err    error
}

func (b *breaking) Find(context.Context, policy.Principal, policy.Digest, string) (*policy.Grant, error) {
	if b.broken.Load() {
		return nil, b.err
	}
	return b.grant, nil
}

func TestLeaseEndsIfTheGrantCannotBeRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := policy.Grant{Principal: policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}, Subject: policy.Digest("sha256:" + strings.Repeat("a", 64)),
			Name: "pdf", Permissions: policy.Permissions{Run: true}, Scope: policy.Always, By: policy.Principal{ID: "ann", Kind: policy.UserPrincipal}}
		broken := errors.New("disk on fire")
		s := &breaking{grant: &g, err: broken}
		ctx, stop, err := lease.Acquire(t.Context(), s, g, time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer stop()
		time.Sleep(10 * time.Second)
		s.broken.Store(true)
		<-ctx.Done()
		if err := context.Cause(ctx); !errors.Is(err, broken) {
			t.Errorf("ended by %v, want %v", err, broken)
		}
	})
}

// once is a store in which a grant can be revoked once.
type once struct {
	breaking
	revoked []string
}

func (o *once) Revoke(_ context.Context, ref string) ([]policy.Grant, error) {
	o.revoked = append(o.revoked, ref)
	if len(o.revoked) > 1 {
		return nil, policy.ErrNotGranted
	}
	return []policy.Grant{*o.grant}, nil
}

func TestConsume(t *testing.T) {
	g := policy.Grant{ID: "1", Principal: policy.Principal{ID: "robot", Kind: policy.AgentPrincipal}, Subject: policy.Digest("sha256:" + strings.Repeat("a", 64)),
		Name: "pdf", Permissions: policy.Permissions{Run: true}, Scope: policy.Once, By: policy.Principal{ID: "ann", Kind: policy.UserPrincipal}}
	broken := errors.New("disk on fire")
	s := &once{breaking: breaking{grant: &g, err: broken}}
	s.broken.Store(true)
	if err := lease.Consume(t.Context(), s, g); !errors.Is(err, broken) || len(s.revoked) > 0 {
		t.Errorf("error is %v, want %v; revoked %v", err, broken, s.revoked)
	}
	s.broken.Store(false)
	if err := lease.Consume(t.Context(), s, g); err != nil || len(s.revoked) != 1 {
		t.Errorf("error is %v; revoked %v", err, s.revoked)
	}
	if err := lease.Consume(t.Context(), s, g); !errors.Is(err, policy.ErrNotGranted) {
		t.Errorf("the second time, the error is %v", err)
	}
	always := g
	always.Scope = policy.Always
	s = &once{breaking: breaking{grant: &always, err: broken}}
	for range 2 {
		if err := lease.Consume(t.Context(), s, always); err != nil || len(s.revoked) > 0 {
			t.Errorf("error is %v; revoked %v", err, s.revoked)
		}
	}
	s.broken.Store(true)
	if err := lease.Consume(t.Context(), s, always); !errors.Is(err, broken) {
		t.Errorf("error is %v, want %v", err, broken)
	}
}

// counting is a store that finds all grants and counts the checks.
type counting struct {
	policy.Store
	mu             sync.Mutex
	grants         map[policy.Digest]policy.Grant
	found, grouped int
}

func (c *counting) Find(_ context.Context, _ policy.Principal, subject policy.Digest, _ string) (*policy.Grant, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.found++
	g, ok := c.grants[subject]
	if !ok {
		return nil, policy.ErrNotGranted
	}
	return &g, nil
}

func (c *counting) AreGranted(_ context.Context, all []policy.Grant) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.grouped++
	for _, g := range all {
		if _, ok := c.grants[g.Subject]; !ok {
			return false
		}
	}
	return true
}

// A run with several grants checks them together, and ends with the first that is
// revoked.
func TestGroupChecksGrantsTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &counting{grants: map[policy.Digest]policy.Grant{}}
		all := lease.NewGroup(t.Context(), s, 0)
		defer all.Close()
		for _, name := range []string{"a", "b", "c"} {
			g := runGrant()
			g.Name, g.Subject = name, policy.Digest("sha256:"+strings.Repeat(name, 64))
			if err := all.Add(t.Context(), g); !errors.Is(err, policy.ErrNotGranted) {
				t.Errorf("%s is not granted yet: %v", name, err)
			}
			s.mu.Lock()
			s.grants[g.Subject] = g
			s.mu.Unlock()
			if err := all.Add(t.Context(), g); err != nil {
				t.Fatal(err)
			}
		}
		time.Sleep(1900 * time.Millisecond)
		s.mu.Lock()
		if s.grouped != 9 || s.found != 6 {
			t.Errorf("%d checks of the group and %d of single grants, want 9 and 6", s.grouped, s.found)
		}
		delete(s.grants, policy.Digest("sha256:"+strings.Repeat("b", 64)))
		s.mu.Unlock()
		start := time.Now()
		<-all.Context().Done()
		if err := context.Cause(all.Context()); !errors.Is(err, policy.ErrNotGranted) || !strings.HasPrefix(err.Error(), "approval of b was revoked") {
			t.Errorf("ended by %v", err)
		}
		if d := time.Since(start); d > 200*time.Millisecond {
			t.Errorf("ended after %v", d)
		}
	})
}
