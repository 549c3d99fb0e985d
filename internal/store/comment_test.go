package store_test

import (
	"fmt"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A thread keeps the location of its first comment, is open until it is resolved, and
// ends with its version.
func TestComments(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "tides")
		version := func(digest string) store.Version {
			return must(db.Versions.Add(ctx, store.Version{SkillID: skill.ID, Digest: digest}, nil, nil))(t)
		}
		one, two := version("one"), version("two")
		add := func(m store.Comment) store.Comment {
			t.Helper()
			m.SkillID, m.Author = skill.ID, "ada"
			out := must(db.Comments.Add(ctx, m))(t)
			return must(db.Comments.Get(ctx, out.ID))(t)
		}
		first := add(store.Comment{VersionID: one.ID, Path: "run.sh", Line: 3, LineText: "rm", Text: "Why?"})
		wantEqual(t, first.Thread, first.ID)
		wantEqual(t, first.Number, one.Number)
		reply := add(store.Comment{VersionID: one.ID, Thread: first.ID, Text: "Because."})
		other := add(store.Comment{VersionID: two.ID, Text: "Fine."})
		wantEqual(t, must(db.Comments.List(ctx, one.ID))(t), []store.Comment{first, reply})
		wantEqual(t, must(db.Comments.ListThread(ctx, first.ID))(t), []store.Comment{first, reply})
		wantEqual(t, must(db.Comments.ListOpen(ctx, skill.ID, two.Number))(t), []store.Comment{first, reply})

		for _, bad := range []store.Comment{{VersionID: one.ID, Thread: reply.ID}, {VersionID: two.ID, Thread: first.ID}, {VersionID: "none"}} {
			bad.SkillID, bad.Author, bad.Text = skill.ID, "ada", "x"
			_, err := db.Comments.Add(ctx, bad)
			wantError(t, err, store.ErrNotFound)
		}

		mustDo(t, db.Comments.SetText(ctx, reply.ID, "Because of the tide."))
		if got := must(db.Comments.Get(ctx, reply.ID))(t); got.Text != "Because of the tide." || got.Edited.IsZero() {
			t.Errorf("after an edit: %+v", got)
		}
		wantError(t, db.Comments.SetResolved(ctx, reply.ID, "eve"), store.ErrNotFound)
		mustDo(t, db.Comments.SetResolved(ctx, first.ID, "eve"))
		if got := must(db.Comments.Get(ctx, first.ID))(t); got.ResolvedBy != "eve" || got.Resolved.IsZero() {
			t.Errorf("after it was resolved: %+v", got)
		}
		wantEqual(t, len(must(db.Comments.ListOpen(ctx, skill.ID, 99))(t)), 1)
		mustDo(t, db.Comments.SetResolved(ctx, first.ID, ""))
		wantEqual(t, len(must(db.Comments.ListOpen(ctx, skill.ID, 99))(t)), 3)

		mustDo(t, db.Comments.Delete(ctx, first.ID)) // its reply remains
		wantEqual(t, must(db.Comments.Get(ctx, first.ID))(t).Text, "")
		mustDo(t, db.Comments.Delete(ctx, reply.ID))
		_, err := db.Comments.Get(ctx, first.ID)
		wantError(t, err, store.ErrNotFound)
		wantError(t, db.Comments.Delete(ctx, first.ID), store.ErrNotFound)
		mustDo(t, db.Versions.Delete(ctx, skill.ID, two.Number))
		_, err = db.Comments.Get(ctx, other.ID)
		wantError(t, err, store.ErrNotFound)
	})
}

// The clocks of nodes differ: a reply may have an ID before that of its thread, and is
// neither lost nor the first.
func TestCommentsOfNodesWithOtherClocks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "tides")
		v := must(db.Versions.Add(ctx, store.Version{SkillID: skill.ID, Digest: "one"}, nil, nil))(t)
		for _, m := range []store.Comment{{ID: "0-5"}, {ID: "0-7"}, {ID: "0-3", Thread: "0-5"}, {ID: "0-9", Thread: "0-5"}, {ID: "0-4", Thread: "0-7"}} {
			m.SkillID, m.VersionID, m.Author, m.Text = skill.ID, v.ID, "ada", "x"
			must(db.Comments.Add(ctx, m))(t)
		}
		ids := func(all []store.Comment, err error) (out []string) {
			t.Helper()
			mustDo(t, err)
			for _, m := range all {
				out = append(out, m.ID)
			}
			return out
		}
		want := []string{"0-5", "0-3", "0-9", "0-7", "0-4"}
		wantEqual(t, ids(db.Comments.List(ctx, v.ID)), want)
		wantEqual(t, ids(db.Comments.ListOpen(ctx, skill.ID, 9)), want)
		wantEqual(t, ids(db.Comments.ListThread(ctx, "0-5")), want[:3])
		all, own, err := db.Comments.CountBy(ctx, v.ID, "ada")
		mustDo(t, err)
		wantEqual(t, []int64{all, own}, []int64{5, 5})
		all, own, err = db.Comments.CountBy(ctx, v.ID, "eve")
		mustDo(t, err)
		wantEqual(t, []int64{all, own}, []int64{5, 0})
	})
}

// An old open thread remains in the list, however many comments newer ones have.
func TestOpenThreadsAreLimitedNotTheirComments(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "tides")
		var versions []store.Version
		for _, digest := range []string{"one", "two"} {
			versions = append(versions, must(db.Versions.Add(ctx, store.Version{SkillID: skill.ID, Digest: digest}, nil, nil))(t))
		}
		mustDo(t, db.Tx(ctx, func(tx *store.Tx) error {
			for i := range store.MaxComments + 2 {
				m := store.Comment{ID: fmt.Sprintf("0-%04d", i), SkillID: skill.ID, VersionID: versions[1].ID, Author: "ada", Text: "x", Thread: "0-0002"}
				if i < 2 {
					m.VersionID = versions[i/2].ID
				}
				if i <= 2 {
					m.Thread = ""
				}
				if _, err := tx.Comments.Add(ctx, m); err != nil {
					return err
				}
			}
			return nil
		}))
		got := must(db.Comments.ListOpen(ctx, skill.ID, 9))(t)
		wantEqual(t, len(got), store.MaxComments+2)
		wantEqual(t, []string{got[0].ID, got[1].ID, got[2].ID}, []string{"0-0000", "0-0001", "0-0002"})
	})
}

func TestCommentsAreBounded(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	ctx := t.Context()
	skill := newSkill(t, db, store.Public, "tides")
	v := must(db.Versions.Add(ctx, store.Version{SkillID: skill.ID, Digest: "one"}, nil, nil))(t)
	mustDo(t, db.Tx(ctx, func(tx *store.Tx) error {
		for range store.MaxComments {
			if _, err := tx.Comments.Add(ctx, store.Comment{SkillID: skill.ID, VersionID: v.ID, Author: "ada", Text: "x"}); err != nil {
				return err
			}
		}
		return nil
	}))
	_, err := db.Comments.Add(ctx, store.Comment{SkillID: skill.ID, VersionID: v.ID, Author: "ada", Text: "x"})
	wantError(t, err, store.ErrTooMany)
}

// A reviewer has one open request for changes of a skill, which outlives its version.
func TestChangeRequests(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		skill := newSkill(t, db, store.Public, "tides")
		add := func(reviewer string, number int64) store.ChangeRequest {
			t.Helper()
			return must(db.ChangeRequests.Add(ctx, store.ChangeRequest{SkillID: skill.ID, Number: number, Reviewer: reviewer, Note: "No."}))(t)
		}
		add("ada", 1)
		second, other := add("ada", 2), add("eve", 3)
		wantEqual(t, must(db.ChangeRequests.Get(ctx, second.ID))(t), second)
		wantEqual(t, must(db.ChangeRequests.ListOpen(ctx, skill.ID, 9))(t), []store.ChangeRequest{second, other})
		wantEqual(t, must(db.ChangeRequests.ListOpen(ctx, skill.ID, 2))(t), []store.ChangeRequest{second})
		wantEqual(t, must(db.ChangeRequests.CloseBy(ctx, skill.ID, "ada", 1))(t), int64(0))
		wantEqual(t, must(db.ChangeRequests.CloseBy(ctx, skill.ID, "ada", 2))(t), int64(1))
		mustDo(t, db.ChangeRequests.Close(ctx, other.ID))
		wantError(t, db.ChangeRequests.Close(ctx, other.ID), store.ErrNotFound)
		wantEqual(t, len(must(db.ChangeRequests.ListOpen(ctx, skill.ID, 9))(t)), 0)
		_, err := db.ChangeRequests.Add(ctx, store.ChangeRequest{SkillID: "none", Number: 1, Reviewer: "ada"})
		wantError(t, err, store.ErrNotFound)
	})
}
