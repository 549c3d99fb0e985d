package store_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestTransactionIsAtomic(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		boom := errors.New("boom")
		err := db.Tx(ctx, func(tx *store.Tx) error {
			if _, err := tx.Users.Create(ctx, store.User{Name: "ada"}); err != nil {
				return err
			}
			if _, err := tx.Users.ByName(ctx, "ada"); err != nil {
				t.Errorf("what was changed is not seen within: %v", err)
			}
			if _, err := db.Users.ByName(ctx, "ada"); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("what is not stored yet is seen outside: %v", err)
			}
			return boom
		})
		wantError(t, err, boom)
		_, err = db.Users.ByName(ctx, "ada")
		wantError(t, err, store.ErrNotFound)

		mustDo(t, db.Tx(ctx, func(tx *store.Tx) error {
			_, err := tx.Users.ByName(ctx, "ada") // a question without an answer ends nothing
			if !errors.Is(err, store.ErrNotFound) {
				return err
			}
			_, err = tx.Users.Create(ctx, store.User{Name: "ada"})
			return err
		}))
		must(db.Users.ByName(ctx, "ada"))(t)
	})
}

func TestTransactionFailsAfterFailedChange(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		newUser(t, db, "ada")
		newSkill(t, db, store.Public, "pdf")
		for name, fail := range map[string]func(*store.Tx) error{
			"one statement": func(tx *store.Tx) error {
				_, err := tx.Users.Create(ctx, store.User{Name: "ada"})
				return err
			},
			"several": func(tx *store.Tx) error {
				_, err := tx.Skills.Create(ctx, store.Skill{Namespace: store.Public, Name: "pdf"})
				return err
			},
		} {
			err := db.Tx(ctx, func(tx *store.Tx) error {
				if _, err := tx.Users.Create(ctx, store.User{Name: name}); err != nil {
					return err
				}
				wantError(t, fail(tx), store.ErrExists)
				_, err := tx.Users.ByName(ctx, "ada")
				wantError(t, err, store.ErrExists)
				return nil
			})
			wantError(t, err, store.ErrExists)
			_, err = db.Users.ByName(ctx, name)
			wantError(t, err, store.ErrNotFound)
		}
	})
}

func TestContextEndsDuringTransaction(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, cancel := context.WithCancelCause(t.Context())
		errGone := errors.New("the client went away")
		err := db.Tx(ctx, func(tx *store.Tx) error {
			if _, err := tx.Users.Create(ctx, store.User{Name: "ada"}); err != nil {
				return err
			}
			cancel(errGone)
			_, err := tx.Users.Create(ctx, store.User{Name: "bob"})
			wantError(t, err, errGone)
			return nil
		})
		if err == nil {
			t.Error("it is stored")
		}
		newUser(t, db, "ada") // nothing was, and the next one gets its turn
		_, err = db.Users.ByName(ctx, "ada")
		wantError(t, err, errGone)
	})
}

// A change that waits for itself fails, and says so, before long.
func TestChangeBesideTransactionTimesOut(t *testing.T) {
	ctx := t.Context()
	db := must(store.Open(ctx, storetest.SQLite(t), &store.Options{Wait: 20 * time.Millisecond}))(t)
	defer db.Close()
	mustDo(t, db.Tx(ctx, func(*store.Tx) error {
		_, err := db.Users.Create(ctx, store.User{Name: "ada"})
		wantError(t, err, store.ErrBusy)
		return nil
	}))
}

// Two that read the same and write what follows from it: the same on both databases
// as one after the other.
func TestTransactionsAreSerializable(t *testing.T) {
	const clients = 8
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		team := must(db.Groups.Create(ctx, store.Group{Name: "team"}))(t)
		var users []store.User
		for i := range clients {
			u := newUser(t, db, fmt.Sprint("u", i))
			mustDo(t, db.Groups.SetMember(ctx, store.Member{GroupID: team.ID, UserID: u.ID, Role: store.Owner}))
			users = append(users, u)
		}
		last := errors.New("the last owner stays")
		var wg sync.WaitGroup
		for _, u := range users {
			wg.Go(func() {
				for {
					err := db.Tx(ctx, func(tx *store.Tx) error {
						n, err := tx.Groups.CountWithRole(ctx, team.ID, store.Owner)
						if err == nil && n == 1 {
							err = last
						}
						if err != nil {
							return err
						}
						return tx.Groups.RemoveMember(ctx, team.ID, u.ID)
					})
					if !isBusy(err) {
						if err != nil {
							wantError(t, err, last)
						}
						return
					}
				}
			})
		}
		wg.Wait()
		if n := must(db.Groups.CountWithRole(ctx, team.ID, store.Owner))(t); n != 1 {
			t.Errorf("%d owners are left", n)
		}
	})
}

func TestUnstorableValuesAreRefused(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		for name, text := range map[string]string{
			"a NUL":          "a\x00b",
			"no UTF-8":       "a\xffb",
			"longer":         strings.Repeat("x", 257),
			"far too long":   strings.Repeat("x", store.MaxValue+1),
			"nothing at all": "",
		} {
			_, err := db.Users.Create(ctx, store.User{Name: text})
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s: %v", name, err)
			}
			if len(err.Error()) > 2000 && len(text) < 1000 {
				t.Errorf("%s: a long error", name)
			}
		}
		newUser(t, db, strings.Repeat("ü", 128)) // bytes are counted, not characters
		_, err := db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: store.Public, Name: "g", Spec: json.RawMessage(`{"a":`)})
		wantError(t, err, store.ErrInvalid)
		must(db.Kinds.Create(ctx, store.Kind{Kind: "Ghost", Namespace: store.Public, Name: "g", Spec: json.RawMessage(`"\u0000"`)}))(t)
	})
}

func TestPages(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		for _, after := range []string{"x", "e30", "W10", "WyJhIiwiYiJd", "WzFd"} { // not base64, {}, [], ["a","b"], [1]
			_, _, err := db.Users.List(t.Context(), store.Page{After: after})
			wantError(t, err, store.ErrInvalid)
		}
	})
}

// FuzzPage checks that an untrusted cursor is a valid position or an error, and has
// exactly the expected keys.
func FuzzPage(f *testing.F) {
	f.Add("WyJhIiwiYiJd", 2)
	f.Add("", 1)
	f.Add("W1tbW1s", 3)
	f.Fuzz(func(t *testing.T, after string, n int) {
		n = min(max(n, 0), 8)
		keys, err := store.Keys(store.Page{After: after}, n)
		if err == nil && len(keys) != n || err != nil && !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%q and %v", keys, err)
		}
	})
}

func TestFailedReadReleasesItsConnection(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		errRow := errors.New("unreadable row")
		wantError(t, store.FailRead(t.Context(), db, errRow), errRow)
		for name, pool := range db.Pools() {
			if pool.InUse != 0 {
				t.Errorf("%d connections of the pool %q are still in use", pool.InUse, name)
			}
		}
	})
}

func TestCancelledReadIsNotDamaged(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		err := store.CancelRead(t.Context(), db)
		wantError(t, err, context.Canceled)
		if errors.Is(err, store.ErrCorrupt) {
			t.Error("the data is reported as damaged")
		}
	})
}
