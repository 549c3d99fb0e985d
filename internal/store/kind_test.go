package store_test

import (
	"encoding/json"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestKinds(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ghost := must(db.Kinds.Create(ctx, store.Kind{
			Kind: "Ghost", Namespace: store.Public, Name: "weibo", Spec: json.RawMessage(`{"b": 1, "a": 2}`), CreatedBy: "ada", Created: at(1),
		}))(t)
		wantEqual(t, must(db.Kinds.Get(ctx, ghost.ID))(t), ghost) // its JSON unchanged
		wantEqual(t, must(db.Kinds.ByName(ctx, "Ghost", store.Public, "weibo"))(t), ghost)
		_, err := db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: store.Public, Name: "weibo"})
		wantError(t, err, store.ErrExists)
		_, err = db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: store.Public, Name: "x", Spec: json.RawMessage("{")})
		wantError(t, err, store.ErrInvalid)
		must(db.Kinds.Create(ctx, store.Kind{Kind: "Bot", Namespace: store.Public, Name: "weibo"}))(t)

		if g := must(db.Kinds.Update(ctx, ghost.ID, 1, json.RawMessage(`{}`)))(t); g != 2 {
			t.Errorf("generation %d", g)
		}
		_, err = db.Kinds.Update(ctx, ghost.ID, 1, nil)
		wantError(t, err, store.ErrConflict)
		_, err = db.Kinds.Update(ctx, "none", 1, nil)
		wantError(t, err, store.ErrNotFound)
		if r := must(db.Revisions(ctx))(t); r[store.KindsRevision] != 3 {
			t.Errorf("revisions are %v", r)
		}

		for _, name := range []string{"a", "b", "c"} {
			must(db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: store.Public, Name: name}))(t)
		}
		list := every(t, func(p store.Page) ([]store.Kind, string, error) {
			return db.Kinds.List(ctx, "Ghost", []store.Namespace{store.Public}, p)
		})
		wantEqual(t, names(list, func(k store.Kind) string { return k.Name }), []string{"a", "b", "c", "weibo"})
		mustDo(t, db.Kinds.Delete(ctx, ghost.ID))
		wantError(t, db.Kinds.Delete(ctx, ghost.ID), store.ErrNotFound)
	})
}

func TestConcurrentChangesOfOneGeneration(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		k := must(db.Kinds.Create(ctx, store.Kind{Kind: "Bot", Namespace: store.Public, Name: "b"}))(t)
		var (
			wg  sync.WaitGroup
			won atomic.Int64
		)
		for i := range 8 {
			wg.Go(func() {
				_, err := db.Kinds.Update(ctx, k.ID, 1, json.RawMessage(fmt.Sprint(i)))
				if err == nil {
					won.Add(1)
				} else if !isBusy(err) {
					wantError(t, err, store.ErrConflict)
				}
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d changed it", won.Load())
		}
	})
}

// W7, W8: references are stored as written, and the referrers of an item can be listed.
func TestW8References(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "pdf")
		ghost := must(db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: store.Public, Name: "g"}))(t)
		precise := store.Reference{FromKind: "Ghost", FromID: ghost.ID, Slot: "skills", ToKind: store.SkillKind,
			ToNamespace: store.Public, ToName: "pdf", ToID: skill.ID, Digest: "sha256:1"}
		byName := store.Reference{FromKind: "Ghost", FromID: ghost.ID, Slot: "preload_skills", ToKind: store.SkillKind, ToName: "pdf"}
		missing := store.Reference{FromKind: "Ghost", FromID: ghost.ID, Slot: "skills", ToKind: store.SkillKind, ToName: "not there"}
		set := []store.Reference{precise, byName, missing, byName}
		mustDo(t, db.Refs.Set(ctx, "Ghost", ghost.ID, []store.Reference{missing}))
		mustDo(t, db.Refs.Set(ctx, "Ghost", ghost.ID, set))
		wantEqual(t, must(db.Refs.ListFrom(ctx, "Ghost", ghost.ID))(t), set)

		dependent := newSkill(t, db, store.Public, "report")
		mustDo(t, db.Refs.Set(ctx, store.SkillKind, dependent.ID, []store.Reference{{ToKind: store.SkillKind, ToName: "pdf"}}))
		elsewhere := newSkill(t, db, store.Public, "elsewhere")
		mustDo(t, db.Refs.Set(ctx, store.SkillKind, elsewhere.ID, []store.Reference{{ToKind: store.SkillKind, ToName: "pdf", ToID: "another of that name"}}))

		from := func(r store.Reference) string { return r.FromID }
		wantEqual(t, names(must(db.Refs.ListTo(ctx, store.SkillKind, skill.ID, "pdf", 0))(t), from), []string{ghost.ID, ghost.ID, ghost.ID, dependent.ID})
		if n := must(db.Refs.Remove(ctx, "Ghost", ghost.ID, store.SkillKind, skill.ID, "pdf"))(t); n != 3 {
			t.Errorf("removed %d", n)
		}
		wantEqual(t, must(db.Refs.ListFrom(ctx, "Ghost", ghost.ID))(t), []store.Reference{missing})

		mustDo(t, db.Skills.Delete(ctx, dependent.ID))
		mustDo(t, db.Kinds.Delete(ctx, ghost.ID))
		wantEqual(t, must(db.Refs.ListTo(ctx, store.SkillKind, skill.ID, "pdf", 0))(t), []store.Reference(nil))
		wantEqual(t, must(db.Refs.ListFrom(ctx, "Ghost", ghost.ID))(t), []store.Reference(nil))
		wantError(t, db.Refs.Set(ctx, "Ghost", "g", make([]store.Reference, store.MaxRefs+1)), store.ErrInvalid)
	})
}

// A deletion that asks first who refers, and a reference that is made at that moment:
// on both databases one of them sees the other.
func TestReferenceProtectionIsConcurrent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		for i := range 20 {
			skill := newSkill(t, db, store.Public, fmt.Sprint("s", i))
			var wg sync.WaitGroup
			var deleted, referred error
			wg.Go(func() {
				deleted = db.Tx(ctx, func(tx *store.Tx) error {
					refs, err := tx.Refs.ListTo(ctx, store.SkillKind, skill.ID, skill.Name, 1)
					if err == nil && len(refs) > 0 {
						err = store.ErrReferenced
					}
					if err != nil {
						return err
					}
					return tx.Skills.Delete(ctx, skill.ID)
				})
			})
			wg.Go(func() {
				referred = db.Tx(ctx, func(tx *store.Tx) error {
					if _, err := tx.Skills.Get(ctx, skill.ID); err != nil {
						return err
					}
					return tx.Refs.Set(ctx, "Ghost", fmt.Sprint("g", i), []store.Reference{{ToKind: store.SkillKind, ToID: skill.ID}})
				})
			})
			wg.Wait()
			if (deleted == nil) == (referred == nil) {
				t.Fatalf("deleted: %v; referred to: %v", deleted, referred)
			}
		}
	})
}
