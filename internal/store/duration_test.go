package store_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A duration is known to 10 %, and any duration has a bucket.
func TestDurationBuckets(t *testing.T) {
	for d := time.Microsecond; d < 10*24*time.Hour; d += d/7 + 1 {
		got := store.BucketDuration(store.DurationBucket(d))
		if off := float64(got)/float64(d) - 1; off < -0.1 || off > 0.1 {
			t.Fatalf("%v is stored as %v", d, got)
		}
	}
	for d, want := range map[time.Duration]int{-1: 0, 0: 0, 1: 0, 1 << 62: 160} {
		if got := store.DurationBucket(d); got != want {
			t.Errorf("%v has the bucket %d, want %d", d, got, want)
		}
	}
}

func TestDurations(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, ben := newUser(t, db, "ada"), newUser(t, db, "ben")
		const day = 24 * time.Hour
		first := at(0).Truncate(day)
		d := func(owner store.User, skill, name string, bucket int, calls int64, at time.Time) store.Duration {
			return store.Duration{Owner: owner.ID, Skill: skill, Name: name, Bucket: bucket, Calls: calls, LastUsed: at}
		}
		mustDo(t, db.Durations.Add(ctx, d(ada, "", "b__tell", 7, 2, first), d(ada, "s1", "run.sh", 9, 1, first), d(ada, "", "a__tell", 7, 1, first), d(ben, "", "b__tell", 1, 1, first)))
		mustDo(t, db.Durations.Add(ctx, d(ada, "", "b__tell", 7, 3, first.Add(day)), d(ada, "", "b__tell", 3, 1, first), store.Duration{Owner: "none", Name: "x", Calls: 1}))
		want := func(what string, owner store.User, want ...string) {
			t.Helper()
			wantEqual(t, names(must(db.Durations.List(ctx, owner.ID))(t), func(d store.Duration) string {
				return fmt.Sprint(d.Skill, " ", d.Name, " ", d.Bucket, " ", d.Calls)
			}), append([]string{}, want...))
		}
		want("ada's", ada, " a__tell 7 1", " b__tell 3 1", " b__tell 7 5", "s1 run.sh 9 1")
		want("ben's", ben, " b__tell 1 1")
		wantEqual(t, must(db.Durations.Prune(ctx, first.Add(day)))(t), int64(4))
		want("those of the second day", ada, " b__tell 7 5")
		mustDo(t, db.Users.Delete(ctx, ada.ID))
		want("those of a deleted user", ada)
	})
}

// Names beyond the limit are not stored; stored ones go on counting.
func TestDurationsAreBounded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada := newUser(t, db, "ada")
		var all []store.Duration
		for i := range store.MaxDurations {
			all = append(all, store.Duration{Owner: ada.ID, Name: fmt.Sprint("tool", i), Calls: 1})
		}
		mustDo(t, db.Durations.Add(ctx, all...))
		mustDo(t, db.Durations.Add(ctx, store.Duration{Owner: ada.ID, Name: "one more", Calls: 1}, store.Duration{Owner: ada.ID, Name: "tool7", Calls: 1}))
		found, calls := must(db.Durations.List(ctx, ada.ID))(t), int64(0)
		for _, d := range found {
			calls += d.Calls
		}
		if len(found) != store.MaxDurations || calls != store.MaxDurations+1 {
			t.Errorf("%d rows with %d calls", len(found), calls)
		}
	})
}
