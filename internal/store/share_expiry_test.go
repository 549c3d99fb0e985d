package store_test

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A share ends exactly when it expires.
func TestShareExpiresExactly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		db := storetest.Open(t, storetest.SQLite(t))
		session := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		made := must(db.Shares.Create(ctx, store.Share{Link: strings.Repeat("x", 26), Session: session.ID, Owner: "ada", Audience: "members", Expires: time.Now().Add(time.Hour)}, []byte("x")))(t)
		time.Sleep(time.Hour - time.Millisecond)
		must(db.Shares.ByLink(ctx, made.Link))(t)
		wantEqual(t, must(db.Shares.Prune(ctx))(t), int64(0))
		time.Sleep(time.Millisecond)
		_, err := db.Shares.ByLink(ctx, made.Link)
		wantError(t, err, store.ErrNotFound)
		list, _, err := db.Shares.List(ctx, "ada", store.Page{})
		wantEqual(t, len(list), 0)
		wantError(t, err, nil)
		wantEqual(t, must(db.Shares.Total(ctx, "ada"))(t), store.Amount{})
		wantEqual(t, must(db.Shares.Prune(ctx))(t), int64(1))
	})
}
