package assembly_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/loadouttest"
	"github.com/loadout-dev/loadout/policy"
)

// The grants of a hub are a store as policy wants one.
func TestGrantsImplementPolicyStore(t *testing.T) {
	loadouttest.PolicyStore(t, func(t *testing.T) policy.Store {
		db, err := store.Open(t.Context(), storetest.SQLite(t), nil)
		must(t, err)
		t.Cleanup(func() { db.Close() })
		return assembly.NewGrantStore(db, policy.Principal{})
	})
}

// The grants of a user are separate from those of others and from other entries of the
// table.
func TestUserGrants(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ann, bob := policy.Principal{ID: "ann", Kind: policy.UserPrincipal}, policy.Principal{ID: "bob", Kind: policy.UserPrincipal}
		digest := func(s string) policy.Digest { return policy.Digest("sha256:" + strings.Repeat(s, 64)) }
		must(t, db.Grants.Put(ctx, store.Grant{ID: "r", Principal: "review:servers", Subject: string(digest("a")), Data: []byte(`{}`)}))
		g := policy.Grant{Principal: ann, Subject: digest("a"), Name: "pdf", Origin: "user", Permissions: policy.Permissions{Run: true}, Scope: policy.Always, By: ann}
		hers, his := assembly.NewGrantStore(db, ann), assembly.NewGrantStore(db, bob)
		stored, err := hers.Put(ctx, g)
		must(t, err)
		g.Subject = digest("b")
		bad, err := hers.Put(ctx, g)
		must(t, err)
		must(t, db.Grants.Put(ctx, store.Grant{ID: bad.ID, Principal: "person:ann", Subject: string(g.Subject), Data: []byte(`{}`)}))
		g.Subject = digest("a")
		if _, err := his.Put(ctx, g); err == nil {
			t.Error("he keeps a grant of hers")
		}
		if _, err := his.Find(ctx, ann, g.Subject, ""); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("he finds hers: %v", err)
		}
		if _, err := his.Revoke(ctx, stored.ID); !errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("he revokes hers: %v", err)
		}
		if _, err := hers.Find(ctx, ann, digest("b"), ""); err == nil || errors.Is(err, policy.ErrNotGranted) {
			t.Errorf("for a grant that cannot be read she got %v", err)
		}
		all, problems, err := assembly.NewGrantStore(db, policy.Principal{}).List(ctx)
		if err != nil || len(all) != 1 || len(problems) != 1 {
			t.Errorf("all are %v, %v, %v", all, problems, err)
		}
		if revoked, err := hers.Revoke(ctx, bad.ID); err != nil || len(revoked) != 1 {
			t.Errorf("what cannot be read is revoked: %v, %v", revoked, err)
		}
	})
}
