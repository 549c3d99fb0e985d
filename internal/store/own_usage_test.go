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
			mustDo(t, db.MergeUsage(ctx, at))
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
		mustDo(t, db.MergeUsage(ctx, first.Add(day)))
		mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: a.ID, Owner: ada.ID, Loads: 1, LastUsed: first.Add(day)}))
		mustDo(t, db.MergeUsage(ctx, first.Add(day)))
		want("a deleted user", ada, first.Add(2*day))
		if sum := must(db.Usage.Sum(ctx, []string{a.ID}, first))(t)[a.ID]; sum.Loads != 40 {
			t.Errorf("after the user is deleted, the sum is %+v", sum)
		}
		mustDo(t, db.Skills.Delete(ctx, a.ID))
		want("a deleted skill", ben, first.Add(2*day))
		if n := must(db.Usage.PruneOwn(ctx, first.Add(3*day)))(t); n != 0 {
			t.Errorf("%d rows of deleted users and skills were left", n)
		}
	})
}

// The uses of a user and of the other members of groups are counted separately, if they
// used the skill in the period.
func TestTeamUsage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		const day = 24 * time.Hour
		today := at(0).Truncate(day)
		a, b := newSkill(t, db, store.Public, "a"), newSkill(t, db, store.Public, "b")
		users := map[string]store.User{}
		var groups []string
		for _, g := range []struct {
			name    string
			members []string
		}{{"one", []string{"ada", "ben"}}, {"two", []string{"ada", "ben", "cleo"}}, {"other", []string{"dan"}}} {
			group := must(db.Groups.Create(ctx, store.Group{Name: g.name}))(t)
			groups = append(groups, group.ID)
			for _, name := range g.members {
				if users[name].ID == "" {
					users[name] = newUser(t, db, name)
				}
				mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: group.ID, UserID: users[name].ID, Role: store.Reporter}))
			}
		}
		use := func(name string, s store.Skill, uses int64, at time.Time) {
			t.Helper()
			mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: s.ID, Owner: users[name].ID, Loads: uses, LastUsed: at}))
			mustDo(t, db.MergeUsage(ctx, at))
		}
		use("ada", a, 1, today.Add(-day))
		use("ada", a, 2, today)
		use("ben", a, 4, today)
		use("cleo", a, 8, today)
		use("cleo", b, 16, today.Add(-2*day))
		use("dan", a, 32, today)
		team := func(groups []string, since time.Time) []store.TeamUse {
			t.Helper()
			found := must(db.Usage.ListTeam(ctx, users["ada"].ID, groups, since))(t)
			slices.SortFunc(found, func(a, b store.TeamUse) int { return int(b.Own - a.Own) })
			return found
		}
		wantEqual(t, team(groups[:2], today.Add(-3*day)), []store.TeamUse{{SkillID: a.ID, Own: 3, Others: 12, Members: 2}, {SkillID: b.ID, Others: 16, Members: 1}})
		wantEqual(t, team(groups[:2], today), []store.TeamUse{{SkillID: a.ID, Own: 3, Others: 12, Members: 2}})
		wantEqual(t, team(groups[:1], today), []store.TeamUse{{SkillID: a.ID, Own: 3, Others: 4, Members: 1}})
		wantEqual(t, team(nil, today), []store.TeamUse{{SkillID: a.ID, Own: 3}})
		_, err := db.Usage.ListTeam(ctx, users["ada"].ID, make([]string, store.MaxNamespaces+1), today)
		wantError(t, err, store.ErrInvalid)
	})
}

// A list does not depend on when on its day it is read: a use around midnight is
// counted on the day on which it is merged.
func TestOwnUsageAroundMidnight(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, a := newUser(t, db, "ada"), newSkill(t, db, store.Public, "a")
		const day = 24 * time.Hour
		today := at(0).Truncate(day)
		for _, tt := range []struct {
			used, merged time.Duration // since midnight
			want         int64         // in today's list
		}{
			{-2 * day, -2 * day, 1},
			{-time.Minute, -time.Second, 2},
			{-time.Second, time.Second, 2}, // is pending at midnight
			{30 * time.Minute, 31 * time.Minute, 2},
			{23 * time.Hour, 24*time.Hour - time.Second, 2},
		} {
			mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: a.ID, Owner: ada.ID, Loads: 1, LastUsed: today.Add(tt.used)}))
			mustDo(t, db.MergeUsage(ctx, today.Add(tt.merged)))
			if got := must(db.Usage.ListOwn(ctx, ada.ID, today))(t); len(got) != 1 || got[0].Uses != tt.want {
				t.Errorf("after the use at %v, today's list is %+v, want %d uses", tt.used, got, tt.want)
			}
		}
		if got := must(db.Usage.ListOwn(ctx, ada.ID, today.Add(day)))(t); len(got) != 1 || got[0].Uses != 5 || !got[0].Last.Equal(today) {
			t.Errorf("tomorrow's list is %+v", got)
		}
	})
}

// A node whose clock is ahead does not hide the later uses.
func TestOwnUsageOfWrongClock(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, a := newUser(t, db, "ada"), newSkill(t, db, store.Public, "a")
		const day = 24 * time.Hour
		today := at(0).Truncate(day)
		for _, tt := range []struct {
			used, merged time.Time
			want         int64 // in tomorrow's list
		}{
			{today.Add(1000 * day), today, 1},   // used on a node that is ahead
			{today, today.Add(1000 * day), 1},   // merged on it
			{today, today.Add(time.Hour), 3},    // merged on another
			{today, today.Add(-time.Second), 4}, // merged on a node that is slightly behind
			{today, today.Add(day - time.Second), 5},
		} {
			mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: a.ID, Owner: ada.ID, Loads: 1, LastUsed: tt.used}))
			mustDo(t, db.MergeUsage(ctx, tt.merged))
			var got int64
			for _, u := range must(db.Usage.ListOwn(ctx, ada.ID, today.Add(day)))(t) {
				got += u.Uses
			}
			if got != tt.want {
				t.Errorf("used %v, merged %v: %d uses, want %d", tt.used, tt.merged, got, tt.want)
			}
		}
	})
}

func TestOwnUsageIsPruned(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		const day = 24 * time.Hour
		today := at(0).Truncate(day)
		for i, ago := range []time.Duration{store.OwnUseDays + 1, store.OwnUseDays, 0} {
			s := newSkill(t, db, store.Public, fmt.Sprint("s", i))
			mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: s.ID, Owner: ada.ID, Loads: 1, LastUsed: today}))
			mustDo(t, db.MergeUsage(ctx, today.Add(-ago*day)))
		}
		before := must(db.Usage.ListOwn(ctx, ada.ID, today))(t)
		if n := must(db.Usage.PruneOwn(ctx, today.Add(-store.OwnUseDays*day)))(t); n != 1 {
			t.Errorf("%d rows deleted", n)
		}
		if got := must(db.Usage.ListOwn(ctx, ada.ID, today))(t); len(got) != 1 || !slices.Equal(got, before) {
			t.Errorf("listed %+v, before %+v", got, before)
		}
		if n := must(db.Usage.PruneOwn(ctx, today.Add(day)))(t); n != 2 {
			t.Errorf("%d rows were left", n)
		}
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
		mustDo(t, db.MergeUsage(ctx, first))
		if n := count(first.Add(day)); n != store.MaxOwnUses {
			t.Errorf("%d skills are counted", n)
		}
		late := first.Add((store.OwnUseDays + 1) * day)
		rows[0].LastUsed = late
		mustDo(t, db.Usage.Add(ctx, rows[0])) // known, so that nothing is deleted for it
		mustDo(t, db.MergeUsage(ctx, late))
		if n := count(first.Add(day)); n < store.MaxOwnUses-1 {
			t.Errorf("%d skills are left", n)
		}
		for i := range rows {
			rows[i].LastUsed = late
		}
		mustDo(t, db.Usage.Add(ctx, rows...))
		mustDo(t, db.MergeUsage(ctx, late))
		if n := count(late.Add(day)); n != store.MaxOwnUses {
			t.Errorf("%d skills are counted later", n)
		}
	})
}
