package store_test

import (
	"bytes"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestDrafts(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		d := store.Draft{Session: s.ID, Name: "tides", Digest: "sha256:00"}
		wantError(t, db.Drafts.Add(ctx, d, bytes.Repeat([]byte{1}, store.MaxValue+1)), store.ErrInvalid)
		mustDo(t, db.Drafts.Add(ctx, d, []byte("\x00package")))
		wantEqual(t, must(db.Drafts.Get(ctx, s.ID))(t), d)
		wantEqual(t, string(must(db.Drafts.Package(ctx, s.ID))(t)), "\x00package")
		wantError(t, db.Drafts.Add(ctx, d, []byte("another")), store.ErrExists)
		other := must(db.Sessions.Create(ctx, store.Session{Owner: "eve"}))(t)
		mustDo(t, db.Drafts.Add(ctx, store.Draft{Session: other.ID, Name: "x", Digest: "y"}, []byte{1}))
		wantEqual(t, must(db.Drafts.Total(ctx, "ada"))(t), store.Amount{Count: 1, Bytes: int64(len("\x00package"))})
		wantEqual(t, must(db.Drafts.Total(ctx, "bob"))(t), store.Amount{})
		wantError(t, db.Drafts.Add(ctx, store.Draft{Session: "none", Name: "x", Digest: "y"}, []byte{1}), store.ErrNotFound)
		mustDo(t, db.Sessions.Delete(ctx, s.ID))
		wantEqual(t, must(db.Drafts.Total(ctx, "ada"))(t), store.Amount{})
		_, err := db.Drafts.Package(ctx, s.ID)
		wantError(t, err, store.ErrNotFound)
		_, err = db.Drafts.Get(ctx, s.ID)
		wantError(t, err, store.ErrNotFound)
	})
}
