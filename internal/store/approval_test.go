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

func askID(a store.ApprovalRequest) string { return a.ID }

func TestAsks(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		a := store.ApprovalRequest{ID: "s.1", Session: "s", Principal: "user:ada", Data: json.RawMessage(`{"m":"?"}`), Created: at(1), Deadline: at(5)}
		mustDo(t, db.ApprovalRequests.Add(ctx, a))
		wantError(t, db.ApprovalRequests.Add(ctx, a), store.ErrExists)
		wantEqual(t, must(db.ApprovalRequests.Get(ctx, "s.1"))(t), a)
		mustDo(t, db.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: "s.2", Session: "s", Principal: "user:bob", Created: at(2)}))
		wantEqual(t, names(must(db.ApprovalRequests.ListPending(ctx, "s"))(t), askID), []string{"s.1", "s.2"})
		wantEqual(t, names(must(db.ApprovalRequests.ListPendingFor(ctx, "user:bob"))(t), askID), []string{"s.2"})
		wantEqual(t, names(must(db.ApprovalRequests.ListOverdue(ctx, at(4)))(t), askID), []string{})
		wantEqual(t, names(must(db.ApprovalRequests.ListOverdue(ctx, at(5)))(t), askID), []string{"s.1"})

		_, _, err := db.ApprovalRequests.Resolve(ctx, "s.1", nil)
		wantError(t, err, store.ErrInvalid)
		_, _, err = db.ApprovalRequests.Resolve(ctx, "none", json.RawMessage(`"yes"`))
		wantError(t, err, store.ErrNotFound)
		stands, first, err := db.ApprovalRequests.Resolve(ctx, "s.1", json.RawMessage(`"yes"`))
		if err != nil || !first || string(stands.Answer) != `"yes"` || stands.Resolved.IsZero() {
			t.Errorf("answer is %+v %v %v", stands, first, err)
		}
		stands, first, err = db.ApprovalRequests.Resolve(ctx, "s.1", json.RawMessage(`"no"`))
		if err != nil || first || string(stands.Answer) != `"yes"` {
			t.Errorf("answer is %+v %v %v", stands, first, err)
		}
		wantEqual(t, names(must(db.ApprovalRequests.ListPending(ctx, "s"))(t), askID), []string{"s.2"})
		wantEqual(t, names(must(db.ApprovalRequests.ListOverdue(ctx, at(5)))(t), askID), []string{})

		if n := must(db.ApprovalRequests.Prune(ctx, stands.Resolved.Add(1e6)))(t); n != 1 {
			t.Errorf("forgot %d", n)
		}
		mustDo(t, db.ApprovalRequests.Delete(ctx, "s.2"))
		mustDo(t, db.ApprovalRequests.Delete(ctx, "s.2"))
		_, err = db.ApprovalRequests.Get(ctx, "s.2")
		wantError(t, err, store.ErrNotFound)
	})
}

// W27: the first of several concurrent answers wins.
func TestW27FirstAnswerWins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		mustDo(t, db.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: "s.1", Session: "s"}))
		var (
			wg     sync.WaitGroup
			won    atomic.Int64
			stands = make([]string, 16)
		)
		for i := range stands {
			wg.Go(func() {
				a, first, err := db.ApprovalRequests.Resolve(ctx, "s.1", json.RawMessage(fmt.Sprint(i)))
				mustDo(t, err)
				if first {
					won.Add(1)
				}
				stands[i] = string(a.Answer)
			})
		}
		wg.Wait()
		if won.Load() != 1 {
			t.Errorf("%d answers were the first", won.Load())
		}
		for _, answer := range stands {
			if answer != stands[0] {
				t.Fatalf("answers that stand are %v", stands)
			}
		}
	})
}

func TestSessionRequestLimit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		mustDo(t, db.Tx(ctx, func(tx *store.Tx) error {
			for i := range store.MaxPendingRequests {
				if err := tx.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: fmt.Sprint("s.", i), Session: "s"}); err != nil {
					return err
				}
			}
			return nil
		}))
		wantError(t, db.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: "s.x", Session: "s"}), store.ErrTooMany)
		mustDo(t, db.ApprovalRequests.Add(ctx, store.ApprovalRequest{ID: "o.x", Session: "o"}))
	})
}

func TestGrants(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		put := func(id, session string, created, expires int) store.Grant {
			g := store.Grant{ID: id, Principal: "user:ada", Subject: "sha256:1", Name: "pdf", Session: session, Data: json.RawMessage(`{"id":"` + id + `"}`), Created: at(created)}
			if expires > 0 {
				g.Expires = at(expires)
			}
			mustDo(t, db.Grants.Put(ctx, g))
			return g
		}
		id := func(g store.Grant) string { return g.ID }
		put("a", "", 5, 0)
		put("b", "s1", 4, 10)
		put("c", "", 3, 6) // the clock was set back: it was given last all the same
		find := func(session string, hour int) []string {
			return names(must(db.Grants.Find(ctx, "user:ada", "sha256:1", session, at(hour)))(t), id)
		}
		wantEqual(t, find("", 5), []string{"c", "a"})
		wantEqual(t, find("s1", 5), []string{"c", "b", "a"})
		wantEqual(t, find("s1", 6), []string{"b", "a"})
		wantEqual(t, find("s2", 20), []string{"a"})
		put("a", "", 1, 0) // again
		wantEqual(t, find("", 5), []string{"a", "c"})
		if found := must(db.Grants.Find(ctx, "user:bob", "sha256:1", "", at(5)))(t); len(found) != 0 {
			t.Errorf("found %v", found)
		}

		list := must(db.Grants.List(ctx, "user:ada", 0))(t)
		wantEqual(t, names(list, id), []string{"b", "c", "a"})
		wantEqual(t, string(list[0].Data), `{"id":"b"}`)
		wantEqual(t, names(must(db.Grants.List(ctx, "", list[0].Seq))(t), id), []string{"c", "a"})
		if g := must(db.Grants.Delete(ctx, "b"))(t); g.ID != "b" || g.Seq != list[0].Seq {
			t.Errorf("withdrew %+v", g)
		}
		_, err := db.Grants.Delete(ctx, "b")
		wantError(t, err, store.ErrNotFound)
		if n := must(db.Grants.Prune(ctx, at(7)))(t); n != 1 {
			t.Errorf("forgot %d", n)
		}
	})
}
