package store_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func skillNames(skills []store.Skill) []string {
	return names(skills, func(s store.Skill) string { return s.Name })
}

func TestSkillFollowsItsCurrentVersion(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Skills.Create(ctx, store.Skill{
			Namespace: store.Public, Name: "pdf", Origin: "git", Source: json.RawMessage(`{"repo": "r"}`), CreatedBy: "ada", Created: at(1),
		}))(t)
		wantEqual(t, must(db.Skills.Get(ctx, s.ID))(t), s)

		hash := must(db.Blobs.Put(ctx, []byte("one"), []byte("two")))(t)
		first := must(db.Versions.Add(ctx, store.Version{
			SkillID: s.ID, Label: "1.10", Digest: "sha256:1", Display: "PDF", Description: "Reads PDF files", Tags: []string{"doc"},
			Source: json.RawMessage(`{"commit":"c"}`), Meta: json.RawMessage(`{"a":1}`), CreatedBy: "ada", Created: at(2),
		}, []store.File{{Path: "b", SHA256: hash[1], Size: 3}, {Path: "SKILL.md", SHA256: hash[0], Size: 3}}, json.RawMessage(`["x"]`)))(t)
		if first.Number != 1 || first.Size != 6 || first.Files != 2 || first.Review != store.Pending {
			t.Errorf("version is %+v", first)
		}
		wantEqual(t, must(db.Versions.Get(ctx, s.ID, 1))(t), first)
		wantEqual(t, must(db.Versions.GetByDigest(ctx, s.ID, "sha256:1"))(t), first)
		wantEqual(t, must(db.Versions.ListByDigest(ctx, "sha256:1"))(t), []store.Version{first})
		wantEqual(t, must(db.Versions.Findings(ctx, first.ID))(t), json.RawMessage(`["x"]`))
		wantEqual(t, must(db.Versions.Manifest(ctx, first.ID))(t), []store.File{{Path: "SKILL.md", SHA256: hash[0], Size: 3}, {Path: "b", SHA256: hash[1], Size: 3}})
		wantEqual(t, must(db.Versions.File(ctx, first.ID, "b"))(t), store.File{Path: "b", SHA256: hash[1], Size: 3})
		_, err := db.Versions.File(ctx, first.ID, "c")
		wantError(t, err, store.ErrNotFound)
		wantEqual(t, must(db.Skills.Get(ctx, s.ID))(t).Number, int64(0)) // not current yet

		second := newVersion(t, db, s.ID, "2")
		wantEqual(t, must(db.Skills.Changes(ctx, 0))(t)[0].Pending, []store.PendingVersion{{SkillID: s.ID, Number: 2}, {SkillID: s.ID, Number: 1, CreatedBy: "ada", Meta: json.RawMessage(`{"a":1}`)}})
		mustDo(t, db.Skills.SetCurrent(ctx, s.ID, 2))
		got := must(db.Skills.Get(ctx, s.ID))(t)
		if got.Number != 2 || got.Digest != second.Digest || got.Description != "about 2" || got.Updated.Before(s.Updated) {
			t.Errorf("skill is %+v", got)
		}
		mustDo(t, db.Skills.SetCurrent(ctx, s.ID, 1)) // and back
		mustDo(t, db.Versions.SetReview(ctx, s.ID, "sha256:1", store.Approved, "rev", "fine"))
		got = must(db.Skills.Get(ctx, s.ID))(t)
		wantEqual(t, got, store.Skill{
			ID: s.ID, Namespace: store.Public, Name: "pdf", Origin: "git", Source: s.Source, CreatedBy: "ada", Created: at(1), Updated: got.Updated,
			Number: 1, Label: "1.10", Digest: "sha256:1", Review: store.Approved, Reviewer: "rev", Reviewed: got.Reviewed, Size: 6, Files: 2,
			Display: "PDF", Description: "Reads PDF files", Tags: []string{"doc"}, Meta: json.RawMessage(`{"a":1}`),
		})

		wantError(t, db.Skills.SetCurrent(ctx, s.ID, 3), store.ErrNotFound)
		wantError(t, db.Skills.SetCurrent(ctx, "none", 1), store.ErrNotFound)
		wantError(t, db.Versions.SetReview(ctx, s.ID, "sha256:9", store.Approved, "", ""), store.ErrNotFound)
		wantError(t, db.Versions.SetReview(ctx, s.ID, "sha256:1", "maybe", "", ""), store.ErrInvalid)
		wantError(t, db.Versions.Delete(ctx, s.ID, 1), store.ErrReferenced)
		mustDo(t, db.Versions.Delete(ctx, s.ID, 2))
		wantError(t, db.Versions.Delete(ctx, s.ID, 2), store.ErrNotFound)
		mustDo(t, db.Skills.Update(ctx, s.ID, "", nil))
		wantEqual(t, must(db.Skills.Get(ctx, s.ID))(t).Source, json.RawMessage(nil))
	})
}

func TestSkillVersions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := newSkill(t, db, store.Public, "pdf")
		for i := range 5 {
			newVersion(t, db, s.ID, fmt.Sprint("v", i))
		}
		hash := must(db.Blobs.Put(ctx, []byte("v1")))(t)
		_, err := db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: "sha256:v1"}, nil, nil)
		wantError(t, err, store.ErrExists)
		_, err = db.Versions.Add(ctx, store.Version{SkillID: "none", Digest: "d"}, nil, nil)
		wantError(t, err, store.ErrNotFound)
		_, err = db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: "d"}, []store.File{{Path: "a", SHA256: strings.Repeat("0", 64)}}, nil)
		wantError(t, err, store.ErrNotFound)
		_, err = db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: "d"}, []store.File{{Path: "a", SHA256: hash[0]}, {Path: "a", SHA256: hash[0]}}, nil)
		wantError(t, err, store.ErrExists)
		_, err = db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: "d"}, make([]store.File, store.MaxFiles+1), nil)
		wantError(t, err, store.ErrInvalid)

		number := func(v store.Version) string { return fmt.Sprint(v.Number) }
		wantEqual(t, names(must(db.Versions.List(ctx, s.ID, 0, 0))(t), number), []string{"5", "4", "3", "2", "1"})
		wantEqual(t, names(must(db.Versions.List(ctx, s.ID, 4, 2))(t), number), []string{"3", "2"})

		other := newSkill(t, db, store.Public, "other")
		newVersion(t, db, other.ID, "v1") // the same digest in another skill
		mustDo(t, db.Versions.SetReview(ctx, s.ID, "sha256:v1", store.Rejected, "rev", ""))
		waiting := every(t, func(p store.Page) ([]store.Version, string, error) {
			return db.Versions.ListPending(ctx, []store.Namespace{store.Public}, p)
		})
		wantEqual(t, names(waiting, number), []string{"1", "3", "4", "5", "1"})
		own := newSkill(t, db, store.UserNamespace(newUser(t, db, "ada").ID), "own")
		newVersion(t, db, own.ID, "v1")
		everywhere := every(t, func(p store.Page) ([]store.Version, string, error) { return db.Versions.ListAllPending(ctx, p) })
		wantEqual(t, names(everywhere, number), []string{"1", "3", "4", "5", "1", "1"})
	})
}

func TestVersionWithManyFiles(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := newSkill(t, db, store.Public, "pdf")
		hash := must(db.Blobs.Put(ctx, []byte("x")))(t)[0]
		var files []store.File
		for i := range 1001 {
			files = append(files, store.File{Path: fmt.Sprintf("f%04d", i), SHA256: hash, Size: 1})
		}
		v := must(db.Versions.Add(ctx, store.Version{SkillID: s.ID, Digest: "d"}, files, nil))(t)
		wantEqual(t, must(db.Versions.Manifest(ctx, v.ID))(t), files)
	})
}

// W5, W6: names are unique in a namespace, free again after a deletion, and looked up
// nearest first.
func TestW6Scopes(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := newUser(t, db, "ada"), newUser(t, db, "bob")
		team := must(db.Groups.Create(ctx, store.Group{Name: "team"}))(t)
		mine, ours := store.UserNamespace(ada.ID), store.GroupNamespace(team.ID)
		own := newSkill(t, db, mine, "pdf")
		public := newSkill(t, db, store.Public, "pdf")
		newSkill(t, db, store.UserNamespace(bob.ID), "pdf")

		visible := []store.Namespace{mine, ours, store.Public}
		in := func(c store.Candidate) string { return string(c.ListedIn) + " " + c.ID }
		wantEqual(t, names(must(db.Skills.Find(ctx, "pdf", visible))(t), in), []string{string(mine) + " " + own.ID, "public " + public.ID})
		if found := must(db.Skills.Find(ctx, "PDF", visible))(t); len(found) != 0 {
			t.Errorf("found %v", found)
		}

		_, err := db.Skills.Create(ctx, store.Skill{Namespace: mine, Name: "pdf"})
		wantError(t, err, store.ErrExists)
		wantError(t, db.Skills.Publish(ctx, own.ID, store.Public, ada.ID), store.ErrExists)
		mustDo(t, db.Skills.Publish(ctx, own.ID, ours, ada.ID))
		wantError(t, db.Skills.Publish(ctx, own.ID, ours, ada.ID), store.ErrExists)
		wantError(t, db.Skills.Publish(ctx, own.ID, store.GroupNamespace("none"), ada.ID), store.ErrNotFound)
		wantError(t, db.Skills.Publish(ctx, "none", ours, ada.ID), store.ErrNotFound)
		_, err = db.Skills.Create(ctx, store.Skill{Namespace: ours, Name: "pdf"})
		wantError(t, err, store.ErrExists)
		where := names(must(db.Skills.Listings(ctx, own.ID))(t), func(l store.Listing) string { return string(l.Namespace) })
		wantEqual(t, where, []string{string(ours), string(mine)})

		wantError(t, db.Skills.Unpublish(ctx, own.ID, mine), store.ErrReferenced)
		wantError(t, db.Skills.Unpublish(ctx, own.ID, store.Public), store.ErrNotFound)
		mustDo(t, db.Skills.Delete(ctx, own.ID))
		wantError(t, db.Skills.Delete(ctx, own.ID), store.ErrNotFound)
		again := newSkill(t, db, mine, "pdf")
		wantEqual(t, names(must(db.Skills.Find(ctx, "pdf", visible))(t), in), []string{string(mine) + " " + again.ID, "public " + public.ID})
	})
}

func TestListSkills(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		mine := store.UserNamespace(ada.ID)
		ids := map[string]string{}
		for _, name := range []string{"zebra", "alpha", "数据", "mid", "Beta"} {
			ids[name] = newSkill(t, db, mine, name).ID
		}
		newSkill(t, db, store.Public, "alpha") // of the same name
		newSkill(t, db, store.Public, "common")
		mustDo(t, db.Skills.Publish(ctx, ids["mid"], store.Public, ada.ID)) // seen twice, listed once

		list := func(q store.SkillQuery) []string {
			return skillNames(every(t, func(p store.Page) ([]store.Skill, string, error) {
				q.Page = p
				return db.Skills.List(ctx, q)
			}))
		}
		both := []store.Namespace{mine, store.Public}
		wantEqual(t, list(store.SkillQuery{Namespaces: both}), []string{"Beta", "alpha", "alpha", "common", "mid", "zebra", "数据"})
		wantEqual(t, list(store.SkillQuery{Namespaces: both[1:]}), []string{"alpha", "common", "mid"})
		wantEqual(t, list(store.SkillQuery{}), []string{})

		mustDo(t, db.Skills.SetHidden(ctx, ids["mid"], true))
		wantEqual(t, list(store.SkillQuery{Namespaces: both[1:]}), []string{"alpha", "common"})
		wantEqual(t, list(store.SkillQuery{Namespaces: both[1:], Hidden: true}), []string{"alpha", "common", "mid"})
		if found := must(db.Skills.Find(ctx, "mid", both))(t); len(found) != 2 { // W30: usable by name
			t.Errorf("found %v", found)
		}

		_, _, err := db.Skills.List(ctx, store.SkillQuery{Namespaces: both, Page: store.Page{After: "nonsense"}})
		wantError(t, err, store.ErrInvalid)
	})
}

// One who follows the changes knows at any time what there is.
func TestSkillChanges(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a, b := newSkill(t, db, store.Public, "a"), newSkill(t, db, store.Public, "b")
		newVersion(t, db, a.ID, "v")
		mustDo(t, db.Skills.SetCurrent(ctx, a.ID, 1))
		changes := must(db.Skills.Changes(ctx, 0))(t)
		if len(changes) != 2 || changes[0].ID != b.ID || changes[1].ID != a.ID || changes[1].Skill.Number != 1 {
			t.Fatalf("changes are %+v", changes)
		}
		wantEqual(t, changes[1].Listings, []store.Namespace{store.Public})
		last := changes[1].Revision
		wantEqual(t, must(db.Revisions(ctx))(t), map[string]int64{store.SkillsRevision: last})
		if more := must(db.Skills.Changes(ctx, last))(t); len(more) != 0 {
			t.Errorf("changes are %+v", more)
		}

		mustDo(t, db.Skills.Delete(ctx, a.ID))
		wantError(t, db.Skills.SetHidden(ctx, "none", true), store.ErrNotFound) // is no change
		more := must(db.Skills.Changes(ctx, last))(t)
		if len(more) != 1 || more[0].ID != a.ID || more[0].Skill != nil {
			t.Errorf("changes are %+v", more)
		}
	})
}

// Of any number of uploads of one name one makes it, and of one digest; and versions
// that are added at once get numbers without a gap.
func TestConcurrentUploads(t *testing.T) {
	const clients = 24
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var (
			wg       sync.WaitGroup
			made     = make([]error, clients)
			same     = make([]error, clients)
			versions = make([]error, clients)
			skill    = newSkill(t, db, store.Public, "skill")
			hash     = must(db.Blobs.Put(t.Context(), []byte("x")))(t)[0]
			files    = []store.File{{Path: "SKILL.md", SHA256: hash, Size: 1}}
		)
		for i := range clients {
			wg.Go(func() {
				_, made[i] = db.Skills.Create(t.Context(), store.Skill{Namespace: store.Public, Name: "pdf"})
				_, same[i] = db.Versions.Add(t.Context(), store.Version{SkillID: skill.ID, Digest: "same"}, files, nil)
				for { // the retry limit is for callers that give up
					_, versions[i] = db.Versions.Add(t.Context(), store.Version{SkillID: skill.ID, Digest: fmt.Sprint(i)}, files, nil)
					if !isBusy(versions[i]) {
						return
					}
				}
			})
		}
		wg.Wait()
		for _, errs := range [][]error{made, same} {
			won := 0
			for _, err := range errs {
				if err == nil {
					won++
				} else if !isBusy(err) {
					wantError(t, err, store.ErrExists)
				}
			}
			if won != 1 {
				t.Errorf("%d made it", won)
			}
		}
		for _, err := range versions {
			mustDo(t, err)
		}
		list := must(db.Versions.List(t.Context(), skill.ID, 0, store.MaxPage))(t)
		slices.Reverse(list)
		for i, v := range list {
			if v.Number != int64(i+1) {
				t.Fatalf("version %d has number %d", i+1, v.Number)
			}
		}
		if len(list) != clients+1 {
			t.Errorf("%d versions", len(list))
		}
	})
}
