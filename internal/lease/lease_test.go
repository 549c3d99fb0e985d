package lease_test

import (
	"context"
	"errors"
	"strings"
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
