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
