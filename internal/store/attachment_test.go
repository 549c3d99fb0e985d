package store_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestAttachments(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		sum := strings.Repeat("0", 64)
		put := func(path string, data []byte) error {
			return db.Attachments.Put(ctx, store.Attachment{Session: s.ID, Path: path, SHA256: sum}, data)
		}
		mustDo(t, put("b.txt", []byte("first")))
		mustDo(t, put("a/empty", nil))
		mustDo(t, put("b.txt", []byte("\x00second")))
		wantEqual(t, string(must(db.Attachments.Read(ctx, s.ID, "b.txt"))(t)), "\x00second")
		list := must(db.Attachments.List(ctx, s.ID))(t)
		wantEqual(t, names(list, func(a store.Attachment) string { return a.Path }), []string{"a/empty", "b.txt"})
		if list[1].Size != 7 || list[1].SHA256 != sum || list[1].Updated.IsZero() {
			t.Errorf("it is listed as %+v", list[1])
		}
		wantError(t, put("big", bytes.Repeat([]byte{1}, store.MaxValue+1)), store.ErrInvalid)
		wantError(t, put("", nil), store.ErrInvalid)
		wantError(t, db.Attachments.Put(ctx, store.Attachment{Session: "none", Path: "x", SHA256: sum}, nil), store.ErrNotFound)
		mustDo(t, db.Attachments.Delete(ctx, s.ID, "a/empty"))
		wantError(t, db.Attachments.Delete(ctx, s.ID, "a/empty"), store.ErrNotFound)
		mustDo(t, db.Sessions.Delete(ctx, s.ID))
		_, err := db.Attachments.Read(ctx, s.ID, "b.txt")
		wantError(t, err, store.ErrNotFound)
	})
}
