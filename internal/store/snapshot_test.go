package store_test

import (
	"bytes"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestSnapshots(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		put := func(position, format int64, data string) error {
			return db.Snapshots.Put(ctx, store.Snapshot{Session: s.ID, Position: position, Format: format, Data: []byte(data)})
		}
		last := func(position, format int64) (string, error) {
			found, err := db.Snapshots.Last(ctx, s.ID, position, format)
			return string(found.Data), err
		}
		_, err := last(100, 1)
		wantError(t, err, store.ErrNotFound)
		mustDo(t, put(10, 1, "ten\x00"))
		mustDo(t, put(20, 1, "twenty"))
		mustDo(t, put(20, 1, "twenty again"))
		wantEqual(t, must(last(100, 1))(t), "twenty again")
		mustDo(t, put(15, 1, "fifteen")) // a slow node
		wantEqual(t, must(last(100, 1))(t), "twenty again")
		wantEqual(t, must(last(19, 1))(t), "fifteen") // ten is replaced
		_, err = last(14, 1)
		wantError(t, err, store.ErrNotFound)
		_, err = last(100, 2)
		wantError(t, err, store.ErrNotFound)
		wantError(t, db.Snapshots.Put(ctx, store.Snapshot{Session: s.ID, Data: bytes.Repeat([]byte{1}, store.MaxValue+1)}), store.ErrInvalid)
		wantError(t, db.Snapshots.Put(ctx, store.Snapshot{Session: "none", Data: []byte{}}), store.ErrNotFound)
		must(store.Exec(ctx, db, "UPDATE snapshots SET sum = 'x'"))(t)
		_, err = last(100, 1)
		wantError(t, err, store.ErrCorrupt)
		mustDo(t, put(20, 1, "mended"))
		wantEqual(t, must(last(100, 1))(t), "mended")
		mustDo(t, db.Sessions.Delete(ctx, s.ID))
		_, err = last(100, 1)
		wantError(t, err, store.ErrNotFound)
	})
}
