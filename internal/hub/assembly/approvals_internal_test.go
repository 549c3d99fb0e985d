package assembly

import (
	"context"
	"slices"
	"testing"

	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
	"github.com/loadout-dev/loadout/policy"
)

// All grants of a run are checked with the cached reviews, until a skill changes.
func TestReviewedGrantsAreCheckedTogether(t *testing.T) {
	ctx, db := t.Context(), storetest.Open(t, storetest.SQLite(t))
	ann := policy.Principal{ID: "ann", Kind: policy.UserPrincipal}
	checked := []policy.Digest{}
	s := &reviewedGrants{Store: NewGrantStore(db, ann), db: db, principal: ann, checkRunnable: func(_ context.Context, d policy.Digest) error {
		checked = append(checked, d)
		if d == "d" {
			return &library.ReviewError{}
		}
		return nil
	}}
	find := func() []policy.Grant {
		t.Helper()
		var all []policy.Grant
		for subject, need := range map[policy.Digest]policy.Digest{"a": "b", "c": "b"} {
			g, err := s.FindWith(ctx, ann, subject, "", []policy.Need{{Name: "need", Digest: need}})
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, *g)
		}
		return all
	}
	all := find()
	if n := len(checked); n != 3 || !s.AreGranted(ctx, all) || len(checked) != n {
		t.Errorf("checked %v", checked)
	}
	if _, err := s.FindWith(ctx, ann, "d", "", nil); err == nil {
		t.Error("d is granted")
	}
	for name, change := range map[string]func(*policy.Grant){
		"rejected":           func(g *policy.Grant) { g.Subject = "d" },
		"unknown":            func(g *policy.Grant) { g.Subject = "e" },
		"unknown dependency": func(g *policy.Grant) { g.Needs = []policy.Need{{Digest: "e"}} },
		"another principal":  func(g *policy.Grant) { g.Principal.ID = "bob" },
		"not from a review":  func(g *policy.Grant) { g.By = ann },
	} {
		changed := slices.Clone(all)
		change(&changed[1])
		if s.AreGranted(ctx, changed) {
			t.Errorf("%s: granted", name)
		}
	}
	u, err := db.Users.Create(ctx, store.User{Name: "ann"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.Skills.Create(ctx, store.Skill{Namespace: store.UserNamespace(u.ID), Name: "other", CreatedBy: u.ID}); err != nil {
		t.Fatal(err)
	}
	if s.AreGranted(ctx, all) {
		t.Error("granted without a check after a skill changed")
	}
	if all = find(); !s.AreGranted(ctx, all) {
		t.Error("not granted after they were checked again")
	}
}
