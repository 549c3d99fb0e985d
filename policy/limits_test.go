package policy_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/filelock"
	"github.com/loadout-dev/loadout/policy"
)

const most = 4096 // grants in a store

func TestMemoryLimit(t *testing.T) {
	s := policy.NewMemoryStore()
	for i := range most {
		_, err := s.Put(t.Context(), newGrant(digestOf(fmt.Sprintf("%04x", i))))
		try(t, err)
	}
	full(t, s, digestOf("0000"))
}

func TestFileLimit(t *testing.T) {
	s, dir, _ := kept(t)
	for i := range most - 1 {
		try(t, os.WriteFile(filepath.Join(dir, fmt.Sprintf("%04x.json", i)), nil, 0o600))
	}
	full(t, s, digestOf("a"))
}

// full checks that a store has room for a grant that it has, and no other.
func full(t *testing.T, s policy.Store, has policy.Digest) {
	t.Helper()
	if _, err := s.Put(t.Context(), newGrant(has)); err != nil {
		t.Errorf("a grant in place of another: %v", err)
	}
	if _, err := s.Put(t.Context(), newGrant(digestOf("12345678"))); err == nil {
		t.Errorf("more than %d grants are stored", most)
	}
}

func TestChangesWaitForTheLock(t *testing.T) {
	s, dir, _ := kept(t)
	f, err := os.OpenFile(filepath.Join(dir, ".lock"), os.O_RDWR, 0)
	try(t, err)
	defer f.Close()
	if err := filelock.TryLock(f); err != nil {
		t.Skip(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Put(ctx, newGrant(digestOf("b"))); !errors.Is(err, context.Canceled) {
		t.Errorf("put: %v", err)
	}
	if _, err := s.Revoke(ctx, "pdf"); !errors.Is(err, context.Canceled) {
		t.Errorf("revoke: %v", err)
	}
	if grants, _, err := s.List(t.Context()); err != nil || len(grants) != 1 {
		t.Errorf("%d grants (%v), want one", len(grants), err)
	}
}

func TestCallAllowedByBoth(t *testing.T) {
	all := policy.Permissions{Run: true, Network: []string{"a.com"}, Secrets: []string{"A"}, WorkspaceWrite: true, Unsandboxed: true, HostNetwork: true}
	for _, pair := range [][2]policy.Permissions{{all, {}}, {{}, all}} {
		if got := pair[0].Intersect(pair[1]); !cmp.Equal(got, policy.Permissions{}) || !pair[0].Covers(got) || !pair[1].Covers(got) {
			t.Errorf("all and nothing have in common %+v", got)
		}
	}
	if got := all.Intersect(all); !cmp.Equal(got, all) {
		t.Errorf("all and all have in common %+v", got)
	}
	if (policy.Permissions{}).Covers(all) || !all.Covers(policy.Permissions{}) {
		t.Error("nothing is not less than all")
	}
}
