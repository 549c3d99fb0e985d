package store_test

import (
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestSignIns(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		must(db.Users.Create(ctx, store.User{ID: "ada", Name: "ada"}))(t)
		must(db.Users.Create(ctx, store.User{ID: "eve", Name: "eve"}))(t)
		one, other := []byte{1}, []byte{2}
		s := store.SignIn{UserID: "ada", Server: one, Encrypted: []byte("sealed"), KeyID: "k1"}
		mustDo(t, db.SignIns.Put(ctx, s))
		first := must(db.SignIns.Get(ctx, "ada", one))(t)
		s.Encrypted, s.KeyID = []byte("renewed"), "k2"
		mustDo(t, db.SignIns.Put(ctx, s))
		s.Started = first.Started // which a renewal does not change
		wantEqual(t, must(db.SignIns.Get(ctx, "ada", one))(t), s)
		wantEqual(t, must(db.SignIns.ListByUser(ctx, "ada"))(t), []store.SignIn{s})
		wantEqual(t, len(must(db.SignIns.ListByUser(ctx, "eve"))(t)), 0)
		wantEqual(t, must(db.SignIns.StartTimes(ctx, "ada"))(t), map[string]time.Time{string(one): s.Started})
		wantEqual(t, len(must(db.SignIns.StartTimes(ctx, "eve"))(t)), 0)
		mustDo(t, db.SignIns.MarkStarted(ctx, "ada", one))
		wantError(t, db.SignIns.MarkStarted(ctx, "eve", one), store.ErrNotFound)
		wantError(t, db.SignIns.Put(ctx, store.SignIn{UserID: "none", Server: one, Encrypted: []byte{1}}), store.ErrNotFound)
		wantError(t, db.SignIns.Put(ctx, store.SignIn{UserID: "ada", Server: one}), store.ErrInvalid)
		_, err := db.SignIns.Get(ctx, "ada", other)
		wantError(t, err, store.ErrNotFound)
		mustDo(t, db.SignIns.Delete(ctx, "ada", one))
		mustDo(t, db.SignIns.Delete(ctx, "ada", one))
		_, err = db.SignIns.Get(ctx, "ada", one)
		wantError(t, err, store.ErrNotFound)
		mustDo(t, db.SignIns.Put(ctx, s))
		mustDo(t, db.Users.Delete(ctx, "ada"))
		_, err = db.SignIns.Get(ctx, "ada", one)
		wantError(t, err, store.ErrNotFound)

		wants := func() map[string]bool { return must(db.SignIns.FilterRequired(ctx, [][]byte{one, other}))(t) }
		wantEqual(t, wants(), map[string]bool{})
		mustDo(t, db.SignIns.MarkRequired(ctx, one))
		mustDo(t, db.SignIns.MarkRequired(ctx, one))
		wantEqual(t, wants(), map[string]bool{string(one): true})
		mustDo(t, db.SignIns.Prune(ctx, time.Now().Add(time.Hour)))
		wantEqual(t, wants(), map[string]bool{})
	})
}

// What was begun is taken once, in time, by who began it, where he did.
func TestSignInAttempts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		must(db.Users.Create(ctx, store.User{ID: "ada", Name: "ada"}))(t)
		a := store.SignInAttempt{State: []byte{1}, UserID: "ada", Browser: []byte{2}, Encrypted: []byte("sealed")}
		mustDo(t, db.SignIns.AddAttempt(ctx, a, time.Minute, 2))
		for _, other := range []store.SignInAttempt{{State: []byte{9}, UserID: "ada", Browser: []byte{2}}, {State: []byte{1}, UserID: "eve", Browser: []byte{2}}, {State: []byte{1}, UserID: "ada", Browser: []byte{9}}} {
			_, err := db.SignIns.UseAttempt(ctx, other.State, other.UserID, other.Browser)
			wantError(t, err, store.ErrNotFound)
		}
		wantEqual(t, must(db.SignIns.UseAttempt(ctx, a.State, a.UserID, a.Browser))(t), a)
		_, err := db.SignIns.UseAttempt(ctx, a.State, a.UserID, a.Browser)
		wantError(t, err, store.ErrNotFound)
		mustDo(t, db.SignIns.AddAttempt(ctx, a, -time.Minute, 2)) // which is late, and does not count
		_, err = db.SignIns.UseAttempt(ctx, a.State, a.UserID, a.Browser)
		wantError(t, err, store.ErrNotFound)
		for _, state := range []byte{3, 4} {
			a.State = []byte{state}
			mustDo(t, db.SignIns.AddAttempt(ctx, a, time.Minute, 2))
		}
		a.State = []byte{5}
		wantError(t, db.SignIns.AddAttempt(ctx, a, time.Minute, 2), store.ErrTooMany)
		mustDo(t, db.SignIns.Prune(ctx, time.Now()))
	})
}
