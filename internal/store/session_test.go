package store_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestSessions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada", Title: "Report", Agent: "Bot/public/b", Data: json.RawMessage(`{}`), Created: at(1)}))(t)
		wantEqual(t, must(db.Sessions.Get(ctx, s.ID))(t), s)
		_, err := db.Sessions.Create(ctx, s)
		wantError(t, err, store.ErrExists)
		s.Title = "The report"
		s.Generation = must(db.Sessions.Update(ctx, s))(t)
		got := must(db.Sessions.Get(ctx, s.ID))(t)
		s.Updated = got.Updated
		wantEqual(t, got, s)
		s.Generation = 1
		_, err = db.Sessions.Update(ctx, s)
		wantError(t, err, store.ErrConflict)

		s.Generation, s.LastMessage = got.Generation, at(2)
		must(db.Sessions.Update(ctx, s))(t)
		wantEqual(t, must(db.Sessions.Get(ctx, s.ID))(t).LastMessage, at(2))

		var ids []string
		for range 4 {
			ids = append([]string{must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t).ID}, ids...)
		}
		must(db.Sessions.Create(ctx, store.Session{Owner: "bob"}))(t)
		list := every(t, func(p store.Page) ([]store.Session, string, error) {
			return db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Page: p})
		})
		wantEqual(t, names(list, func(s store.Session) string { return s.ID }), append(ids, s.ID))

		must(db.Events.Append(ctx, s.ID, 0, store.Event{Kind: "text"}))(t)
		mustDo(t, db.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: "q", Session: s.ID}))
		mustDo(t, db.Sessions.Delete(ctx, s.ID))
		wantError(t, db.Sessions.Delete(ctx, s.ID), store.ErrNotFound)
		_, err = db.ApprovalRequests.Get(ctx, "q")
		wantError(t, err, store.ErrNotFound)
		if n := must(db.Events.Last(ctx, s.ID))(t); n != 0 {
			t.Errorf("%d events are left", n)
		}
	})
}

func TestEvents(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		add := func(after int64, kinds ...string) (int64, error) {
			var events []store.Event
			for _, k := range kinds {
				events = append(events, store.Event{Kind: k, Data: json.RawMessage(`{"k": "` + k + `"}`), Created: at(1)})
			}
			return db.Events.Append(ctx, "s", after, events...)
		}
		if last := must(add(0, "a"))(t); last != 1 {
			t.Errorf("last is %d", last)
		}
		if last := must(add(1, "b", "c", "d"))(t); last != 4 {
			t.Errorf("last is %d", last)
		}
		for _, after := range []int64{0, 1, 3, 5, -1} { // old, and one that is not yet
			_, err := add(after, "x", "y")
			wantError(t, err, store.ErrConflict)
		}
		if last := must(add(4))(t); last != 4 {
			t.Errorf("last is %d", last)
		}
		_, err := add(4, make([]string, store.MaxAppend+1)...)
		wantError(t, err, store.ErrInvalid)
		_, err = db.Events.Append(ctx, "s", 4, store.Event{Kind: "x"}, store.Event{Kind: "y", Data: json.RawMessage("no JSON")})
		wantError(t, err, store.ErrInvalid)

		got := must(db.Events.Read(ctx, "s", 1, 2))(t)
		wantEqual(t, got, []store.Event{
			{Seq: 2, Kind: "b", Data: json.RawMessage(`{"k": "b"}`), Created: at(1)},
			{Seq: 3, Kind: "c", Data: json.RawMessage(`{"k": "c"}`), Created: at(1)},
		})
		if n := len(must(db.Events.Read(ctx, "s", 0, 0))(t)); n != 4 {
			t.Errorf("%d events", n)
		}
		if last := must(add(4, "branched", "x", "branched", "branched"))(t); last != 8 {
			t.Errorf("last is %d", last)
		}
		wantEqual(t, must(db.Events.ReadBranched(ctx, "s", 5, 1))(t), []store.Event{{Seq: 7, Kind: "branched", Data: json.RawMessage(`{"k": "branched"}`), Created: at(1)}})
		if n := len(must(db.Events.ReadBranched(ctx, "s", 0, 0))(t)); n != 3 {
			t.Errorf("%d branches", n)
		}
		must(db.Events.Append(ctx, "other", 0, store.Event{Kind: "z"}))(t)
		wantEqual(t, must(db.Events.LastOfEach(ctx, []string{"s", "other", "none"}))(t), map[string]int64{"s": 8, "other": 1})
		mustDo(t, db.Events.Delete(ctx, "s"))
		_, err = add(8, "x")
		wantError(t, err, store.ErrConflict)
	})
}

// Events are added to all streams or to none, and so are their sizes.
func TestAppendAll(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		owner := must(db.Users.Create(ctx, store.User{Name: "ada"}))(t)
		s := must(db.Sessions.Create(ctx, store.Session{Owner: owner.ID}))(t)
		in, out := s.ID+"/in", s.ID+"/out"
		event := func(text string) store.Event { return store.Event{Kind: "x", Data: json.RawMessage(`"` + text + `"`)} }
		mustDo(t, db.Events.AppendAll(ctx))
		mustDo(t, db.Events.AppendAll(ctx, store.NewEvents{Stream: in}))
		mustDo(t, db.Events.AppendAll(ctx, store.NewEvents{in, 0, []store.Event{event("a"), event("b")}}, store.NewEvents{Stream: s.ID}, store.NewEvents{out, 0, []store.Event{event("c")}}))
		mustDo(t, db.Events.AppendAll(ctx, store.NewEvents{out, 1, []store.Event{event("d")}}, store.NewEvents{in, 2, []store.Event{event("e")}}))
		before := must(db.Storage.Bytes(ctx, store.UserNamespace(owner.ID)))(t)
		for _, late := range [][]store.NewEvents{
			{{out, 2, []store.Event{event("x")}}, {in, 2, []store.Event{event("x")}}},
			{{out, 1, []store.Event{event("x")}}, {in, 3, []store.Event{event("x")}}},
			{{out, 2, []store.Event{event("x")}}, {in, 4, []store.Event{event("x"), event("y")}}},
		} {
			wantError(t, db.Events.AppendAll(ctx, late...), store.ErrConflict)
		}
		wantError(t, db.Events.AppendAll(ctx, store.NewEvents{in, 3, make([]store.Event, 60)}, store.NewEvents{out, 2, make([]store.Event, 41)}), store.ErrInvalid)
		for stream, want := range map[string]string{in: `"a" "b" "e" `, out: `"c" "d" `} {
			got := ""
			for _, e := range must(db.Events.Read(ctx, stream, 0, 0))(t) {
				got += string(e.Data) + " "
			}
			if got != want {
				t.Errorf("%s has %s, want %s", stream, got, want)
			}
		}
		if after := must(db.Storage.Bytes(ctx, store.UserNamespace(owner.ID)))(t); after != before || before < 15 {
			t.Errorf("%d bytes are stored, before the conflicts %d", after, before)
		}
	})
}

// Writers that all add to one stream lose nothing and leave nothing out, and of two
// that add after the same event one does.
func TestConcurrentEventWriters(t *testing.T) {
	const writers, each = 6, 20
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		var wg sync.WaitGroup
		for w := range writers {
			wg.Go(func() {
				last := int64(0)
				for i := 0; i < each; {
					next, err := db.Events.Append(ctx, "s", last, store.Event{Kind: fmt.Sprintf("%d.%d", w, i)})
					switch {
					case err == nil:
						last, i = next, i+1
					case errors.Is(err, store.ErrConflict):
						last, err = db.Events.Last(ctx, "s")
						fallthrough
					default:
						if err != nil {
							t.Error(err)
							return
						}
					}
				}
			})
		}
		wg.Wait()
		seen := map[string]bool{}
		for i, e := range must(db.Events.Read(ctx, "s", 0, 0))(t) {
			if e.Seq != int64(i+1) {
				t.Fatalf("event %d has number %d", i+1, e.Seq)
			}
			seen[e.Kind] = true
		}
		if len(seen) != writers*each {
			t.Errorf("%d events", len(seen))
		}
	})
}

func TestLeases(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		const span = 10 * time.Second
		one := must(db.Leases.Acquire(ctx, "turn", "node 1", span))(t)
		if one.Fence != 1 || one.Node != "node 1" {
			t.Errorf("lease is %+v", one)
		}
		for _, node := range []string{"node 1", "node 2"} {
			_, err := db.Leases.Acquire(ctx, "turn", node, span)
			wantError(t, err, store.ErrLeaseHeld)
		}
		mustDo(t, db.Leases.Check(ctx, one))
		store.ShiftClock(db, 8*time.Second)
		renewed := must(db.Leases.Renew(ctx, one, span))(t)
		if !renewed.Expires.After(one.Expires) || renewed.Fence != 1 {
			t.Errorf("lease is %+v after %+v", renewed, one)
		}

		// Its node failed.
		store.ShiftClock(db, 30*time.Second)
		two := must(db.Leases.Acquire(ctx, "turn", "node 2", span))(t)
		if two.Fence != 2 {
			t.Errorf("lease is %+v", two)
		}
		_, err := db.Leases.Renew(ctx, one, span)
		wantError(t, err, store.ErrLeaseHeld)
		wantError(t, db.Leases.Check(ctx, one), store.ErrLeaseHeld)
		mustDo(t, db.Leases.Release(ctx, one)) // no longer its own
		mustDo(t, db.Leases.Check(ctx, two))

		// What it writes all the same is not kept.
		err = db.Tx(ctx, func(tx *store.Tx) error {
			if _, err := tx.Events.Append(ctx, "turn", 0, store.Event{Kind: "late"}); err != nil {
				return err
			}
			return tx.Leases.Check(ctx, one)
		})
		wantError(t, err, store.ErrLeaseHeld)
		if n := must(db.Events.Last(ctx, "turn"))(t); n != 0 {
			t.Errorf("%d events", n)
		}

		mustDo(t, db.Leases.Release(ctx, two))
		if three := must(db.Leases.Acquire(ctx, "turn", "node 1", span))(t); three.Fence != 3 {
			t.Errorf("lease is %+v", three)
		}
		_, err = db.Leases.Acquire(ctx, "turn", "", span)
		wantError(t, err, store.ErrInvalid)
	})
}

// A clock that moves back neither extends a lease forever nor takes it from its holder.
func TestClockMovesBack(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		store.ShiftClock(db, 24*time.Hour)
		lost := must(db.Leases.Acquire(ctx, "lost", "node 1", 10*time.Second))(t)
		store.ShiftClock(db, 24*time.Hour-2*time.Second) // a little
		_, err := db.Leases.Acquire(ctx, "lost", "node 2", 10*time.Second)
		wantError(t, err, store.ErrLeaseHeld)
		store.ShiftClock(db, 0) // a day
		taken := must(db.Leases.Acquire(ctx, "lost", "node 2", 10*time.Second))(t)
		if taken.Fence != lost.Fence+1 {
			t.Errorf("lease is %+v", taken)
		}
		wantError(t, db.Leases.Check(ctx, lost), store.ErrLeaseHeld)
	})
}

func TestConcurrentLeaseAcquisition(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		var wg sync.WaitGroup
		errs := make([]error, 16)
		for i := range errs {
			wg.Go(func() { _, errs[i] = db.Leases.Acquire(t.Context(), "turn", fmt.Sprint("node ", i), time.Hour) })
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			if err == nil {
				won++
			} else {
				wantError(t, err, store.ErrLeaseHeld)
			}
		}
		if won != 1 {
			t.Errorf("%d nodes have it", won)
		}
	})
}
