package store_test

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// lockRows locks the rows of a query in a PostgreSQL database until the returned
// function is called, like a process that was stopped in a transaction but has no
// timeouts.
func lockRows(t *testing.T, address, query string, args ...any) (unlock func()) {
	t.Helper()
	db := must(sql.Open("pgx", address))(t)
	tx := must(db.Begin())(t)
	if _, err := tx.Exec(query, args...); err != nil {
		t.Fatal(err)
	}
	unlocked := false
	unlock = func() {
		if !unlocked {
			unlocked = true
			tx.Rollback()
			db.Close()
		}
	}
	t.Cleanup(unlock)
	return unlock
}

// expiredSessions creates sessions whose leases have expired and returns their ids.
func expiredSessions(t *testing.T, db *store.DB, count int) []string {
	t.Helper()
	var ids []string
	for range count {
		s := must(db.Sessions.Create(t.Context(), store.Session{Owner: "ada"}))(t)
		must(db.Leases.Acquire(t.Context(), s.ID, "crashed", time.Minute))(t)
		ids = append(ids, s.ID)
	}
	return ids
}

func TestExpiredLeasesAreAcquired(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ids := expiredSessions(t, db, 3)
		must(db.Leases.Acquire(ctx, "upkeep/sweep", "crashed", time.Millisecond))(t) // not of a session
		wantEqual(t, len(must(db.Leases.AcquireExpired(ctx, "b", time.Minute, 10))(t)), 0)
		if n := must(db.Leases.ExpireNode(ctx, "other"))(t); n != 0 {
			t.Errorf("%d leases of another node expired", n)
		}
		must(db.Leases.ExpireNode(ctx, "crashed"))(t)
		first, second := must(db.Leases.AcquireExpired(ctx, "b", time.Minute, 2))(t), must(db.Leases.AcquireExpired(ctx, "c", time.Minute, 2))(t)
		if len(first) != 2 || len(second) != 1 || second[0].Node != "c" || second[0].Fence != 2 {
			t.Errorf("acquired %+v and %+v of %q", first, second, ids)
		}
		for _, l := range first {
			mustDo(t, db.Leases.Check(ctx, l))
			mustDo(t, db.Leases.Release(ctx, l))
		}
		store.ShiftClock(db, 2*time.Minute)
		late := must(db.Leases.AcquireExpired(ctx, "d", time.Minute, 10))(t) // without the released ones
		if len(late) != 1 || late[0].Name != second[0].Name {
			t.Errorf("acquired %+v, want the lease of %+v", late, second)
		}
	})
}

// A node that was stopped in a transaction keeps the locks of its rows. Leases and
// totals of the others are still available.
func TestLockedRowsDoNotDelayOthers(t *testing.T) {
	address := storetest.Postgres(t)
	db, ctx := storetest.Open(t, address), t.Context()
	ids := expiredSessions(t, db, 3)
	skill := newSkill(t, db, store.Public, "pdf")
	add := func() {
		t.Helper()
		mustDo(t, db.Meter.Add(ctx, store.MeterEntry{Date: at(1), Owner: "ada", Model: "demo", Turns: 1}))
		mustDo(t, db.Usage.Add(ctx, store.SkillUsage{SkillID: skill.ID, Loads: 1, LastUsed: at(1)}))
	}
	add()
	mustDo(t, db.MergeUsage(ctx, at(0)))
	must(db.Leases.ExpireNode(ctx, "crashed"))(t)
	lockRows(t, address, "UPDATE leases SET fence = fence WHERE name = $1", ids[0])
	lockRows(t, address, "UPDATE meter SET turns = turns")
	lockRows(t, address, "UPDATE usage SET loads = loads")

	got := map[string]bool{}
	for _, l := range must(db.Leases.AcquireExpired(ctx, "b", time.Minute, 10))(t) {
		got[l.Name] = true
	}
	wantEqual(t, got, map[string]bool{ids[1]: true, ids[2]: true})
	add()
	wantEqual(t, must(db.Meter.Sum(ctx, store.MeterQuery{GroupBy: store.ByUser}))(t)[0].Turns, int64(2))
	wantEqual(t, must(db.Usage.Sum(ctx, []string{skill.ID}, at(0)))(t)[skill.ID].Loads, int64(2))
}

// The server ends the transaction of a node that does not continue it, and the node
// starts it over.
func TestHangingTransactionIsRolledBack(t *testing.T) {
	address := storetest.Postgres(t)
	t.Run("before a statement", func(t *testing.T) {
		testHangingTransaction(t, address, func(tx *store.Tx) error {
			_, err := tx.Settings.List(t.Context(), "group:x")
			return err
		})
	})
	t.Run("before the commit", func(t *testing.T) {
		testHangingTransaction(t, address, func(*store.Tx) error { return nil })
	})
}

// testHangingTransaction has a transaction hang, and then do the rest.
func testHangingTransaction(t *testing.T, address string, rest func(*store.Tx) error) {
	hanging, healthy, ctx := storetest.Open(t, address), storetest.Open(t, address), t.Context()
	id := expiredSessions(t, hanging, 1)[0]
	locked, resumed := make(chan struct{}), make(chan struct{})
	result := make(chan error, 1)
	tries := 0
	go func() {
		result <- hanging.Tx(ctx, func(tx *store.Tx) error {
			s, err := tx.Sessions.Get(ctx, id)
			if err != nil {
				return err
			}
			s.Title += "+"
			if _, err := tx.Sessions.Update(ctx, s); err != nil {
				return err
			}
			if tries++; tries == 1 {
				close(locked)
				<-resumed
			}
			return rest(tx)
		})
	}()
	<-locked
	s := must(healthy.Sessions.Get(ctx, id))(t)
	s.Title = "healthy"
	must(healthy.Sessions.Update(ctx, s))(t)
	close(resumed)
	mustDo(t, <-result)
	wantEqual(t, must(healthy.Sessions.Get(ctx, id))(t).Title, "healthy+")
	wantEqual(t, tries, 2)
}

func TestLockTimeout(t *testing.T) {
	address := storetest.Postgres(t)
	ctx := t.Context()
	db := must(store.Open(ctx, address, &store.Options{Wait: 300 * time.Millisecond}))(t)
	defer db.Close()
	l := must(db.Leases.Acquire(ctx, "turn", "a", time.Minute))(t)
	unlock := lockRows(t, address, "UPDATE leases SET fence = fence")
	err := db.Leases.Check(ctx, l)
	if !errors.Is(err, store.ErrBusy) || !strings.Contains(err.Error(), "lock not available") {
		t.Errorf("error is %v", err)
	}
	patient := storetest.Open(t, address)
	result := make(chan error, 1)
	go func() { result <- patient.Leases.Check(context.WithoutCancel(ctx), l) }()
	if err := db.Leases.Check(ctx, l); !errors.Is(err, store.ErrBusy) { // meanwhile, the other one has begun to wait
		t.Errorf("error is %v", err)
	}
	unlock()
	mustDo(t, <-result)
}

// Counts are exact while several nodes add and merge them.
func TestUsageIsMergedOnce(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		one, two := storetest.Open(t, address), storetest.Open(t, address)
		skill := newSkill(t, one, store.Public, "pdf")
		const each = 40
		done := make(chan error, 4)
		for _, db := range []*store.DB{one, two} {
			go func() {
				var err error
				for i := range each {
					err = errors.Join(err, db.Meter.Add(ctx, store.MeterEntry{Date: at(i % 3), Owner: "ada", Model: "demo", Turns: 1, Output: 10}),
						db.Usage.Add(ctx, store.SkillUsage{SkillID: skill.ID, Loads: 1, LastUsed: at(i % 3)}))
				}
				done <- err
			}()
			go func() {
				var err error
				for range each / 4 {
					err = errors.Join(err, db.MergeUsage(ctx, at(0)))
				}
				done <- err
			}()
		}
		for range 4 {
			mustDo(t, <-done)
		}
		for range 2 { // with and without pending counts
			sum := must(one.Meter.Sum(ctx, store.MeterQuery{GroupBy: store.ByUser}))(t)
			wantEqual(t, sum, []store.MeterEntry{{Owner: "ada", Model: "demo", Turns: 2 * each, Output: 20 * each}})
			wantEqual(t, must(one.Usage.Sum(ctx, []string{skill.ID}, at(0)))(t)[skill.ID].Loads, int64(2*each))
			mustDo(t, one.MergeUsage(ctx, at(0)))
		}
		if n := must(store.Exec(ctx, one, "DELETE FROM meter_pending"))(t) + must(store.Exec(ctx, one, "DELETE FROM usage_pending"))(t); n != 0 {
			t.Errorf("%d counts are still pending", n)
		}
	})
}
