package store_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// The uses of a user are counted until the start of a day, so that they are the same
// all day.
func TestOwnUsage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, ben := newUser(t, db, "ada"), newUser(t, db, "ben")
		a, b := newSkill(t, db, store.Public, "a"), newSkill(t, db, store.Public, "b")
		const day = 24 * time.Hour
		add := func(owner store.User, s store.Skill, at time.Time, uses int64) {
			t.Helper()
			mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: s.ID, Owner: owner.ID, Loads: uses + 1, Calls: 1, Errors: 2, LastUsed: at}))
			mustDo(t, db.MergeUsage(ctx))
		}
		want := func(what string, owner store.User, at time.Time, want ...store.OwnUse) {
			t.Helper()
			got := must(db.Usage.ListOwn(ctx, owner.ID, at))(t)
			slices.SortFunc(got, func(a, b store.OwnUse) int { return int(b.Uses - a.Uses) })
			if !slices.Equal(got, want) {
				t.Errorf("%s: got %+v, want %+v", what, got, want)
			}
		}
		use := func(s store.Skill, uses int64, last time.Time) store.OwnUse {
			return store.OwnUse{SkillID: s.ID, Name: s.Name, Uses: uses, Last: last}
		}
		first := at(0).Truncate(day)
		add(ada, a, first, 3)
		add(ada, a, first.Add(time.Hour), 2)
		add(ada, b, first, 0) // only failed
		want("the same day", ada, first)
		want("the next day", ada, first.Add(day), use(a, 5, first))
		want("another user", ben, first.Add(day))
		add(ada, a, first.Add(day), 7)
		add(ada, b, first.Add(day), 1)
		want("new uses on that day", ada, first.Add(day), use(a, 5, first))
		add(ada, a, first.Add(time.Minute), 20) // stored late
		want("late uses", ada, first.Add(day), use(a, 5, first))
		want("the day after", ada, first.Add(2*day), use(a, 32, first.Add(day)), use(b, 1, first.Add(day)))
		add(ben, a, first.Add(day), 1)
		want("the other user's uses", ben, first.Add(2*day), use(a, 1, first.Add(day)))
		want("uses that are old", ada, first.Add((store.OwnUseDays+2)*day))
		if sum := must(db.Usage.Sum(ctx, []string{a.ID}, first))(t)[a.ID]; sum.Loads != 38 || sum.Owner != "" {
			t.Errorf("the sum of all users is %+v", sum)
		}

		mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: a.ID, Owner: ada.ID, Loads: 1, LastUsed: first.Add(day)})) // pending
		mustDo(t, db.Users.Delete(ctx, ada.ID))
		mustDo(t, db.MergeUsage(ctx))
		mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: a.ID, Owner: ada.ID, Loads: 1, LastUsed: first.Add(day)}))
		mustDo(t, db.MergeUsage(ctx))
		want("a deleted user", ada, first.Add(2*day))
		if sum := must(db.Usage.Sum(ctx, []string{a.ID}, first))(t)[a.ID]; sum.Loads != 40 {
			t.Errorf("after the user is deleted, the sum is %+v", sum)
		}
		mustDo(t, db.Skills.Delete(ctx, a.ID))
		want("a deleted skill", ben, first.Add(2*day))
		must(db.Usage.Prune(ctx, first.Add(day)))(t)
	})
}

func TestOwnUsageIsBounded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		const day = 24 * time.Hour
		first := at(0).Truncate(day)
		ada := newUser(t, db, "ada")
		rows := make([]store.SkillUsage, store.MaxOwnUses+1)
		for i := range rows {
			rows[i] = store.SkillUsage{SkillID: newSkill(t, db, store.Public, fmt.Sprint("s", i)).ID, Owner: ada.ID, Loads: 1, LastUsed: first}
		}
		count := func(at time.Time) int { return len(must(db.Usage.ListOwn(ctx, ada.ID, at))(t)) }
		mustDo(t, db.Usage.Add(ctx, rows...))
		mustDo(t, db.MergeUsage(ctx))
		if n := count(first.Add(day)); n != store.MaxOwnUses {
			t.Errorf("%d skills are counted", n)
		}
		late := first.Add((store.OwnUseDays + 1) * day)
		rows[0].LastUsed = late
		mustDo(t, db.Usage.Add(ctx, rows[0])) // known, so that nothing is deleted for it
		mustDo(t, db.MergeUsage(ctx))
		if n := count(first.Add(day)); n < store.MaxOwnUses-1 {
			t.Errorf("%d skills are left", n)
		}
		for i := range rows {
			rows[i].LastUsed = late
		}
		mustDo(t, db.Usage.Add(ctx, rows...))
		mustDo(t, db.MergeUsage(ctx))
		if n := count(late.Add(day)); n != store.MaxOwnUses {
			t.Errorf("%d skills are counted later", n)
		}
	})
}
