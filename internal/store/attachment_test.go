package store_test

import (
	"bytes"
	"fmt"
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
		mustDo(t, db.Attachments.Delete(ctx, s.ID, "a/empty", 0))
		wantError(t, db.Attachments.Delete(ctx, s.ID, "a/empty", 0), store.ErrNotFound)
		mustDo(t, db.Tx(ctx, func(tx *store.Tx) error { // a missing file does not fail a transaction
			wantError(t, tx.Attachments.Delete(ctx, s.ID, "a/empty", 0), store.ErrNotFound)
			return tx.Attachments.Delete(ctx, s.ID, "b.txt", 0)
		}))
		mustDo(t, db.Sessions.Delete(ctx, s.ID))
		_, err := db.Attachments.Read(ctx, s.ID, "b.txt")
		wantError(t, err, store.ErrNotFound)
	})
}

// Versions that were replaced or deleted at a later step are kept and can be
// restored.
func TestAttachmentVersions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		put := func(step int64, data string) {
			t.Helper()
			mustDo(t, db.Attachments.Put(ctx, store.Attachment{Session: s.ID, Path: "a.txt", Step: step, SHA256: strings.Repeat("0", 64)}, []byte(data)))
			mustDo(t, db.Attachments.Prune(ctx, s.ID))
		}
		check := func(current, versions string) {
			t.Helper()
			got := ""
			if list := must(db.Attachments.List(ctx, s.ID))(t); len(list) > 0 {
				got = fmt.Sprint(list[0].Step, " ", string(must(db.Attachments.Read(ctx, s.ID, "a.txt"))(t)))
			}
			var others []string
			for _, v := range must(db.Attachments.ListVersions(ctx, s.ID))(t) {
				text := fmt.Sprint(v.Step)
				switch v.SHA256 {
				case "":
					text += " deleted"
				case store.DroppedVersion:
					text += " dropped"
				}
				others = append(others, text)
			}
			if joined := strings.Join(others, ", "); got != current || joined != versions {
				t.Errorf("got %q and versions %q, want %q and %q", got, joined, current, versions)
			}
		}
		put(2, "first")
		put(2, "second")
		check("2 second", "")
		put(4, "third")
		check("4 third", "2")
		mustDo(t, db.Attachments.Delete(ctx, s.ID, "a.txt", 4))
		check("", "2, 4 deleted")
		put(4, "fourth")
		check("4 fourth", "2")
		mustDo(t, db.Attachments.Delete(ctx, s.ID, "a.txt", 6))
		check("", "2, 4, 6 deleted")
		for range 2 {
			mustDo(t, db.Attachments.Restore(ctx, s.ID, "a.txt", 2))
			check("2 second", "4, 6 deleted")
		}
		mustDo(t, db.Attachments.Restore(ctx, s.ID, "a.txt", 6))
		check("", "2, 4, 6 deleted")

		big := strings.Repeat("x", 8<<20)
		for step := range int64(10) {
			put(10+step, big)
		}
		put(20, "last")
		check("20 last", "2 dropped, 4 dropped, 6 deleted, 10 dropped, 11 dropped, 12, 13, 14, 15, 16, 17, 18, 19") // no more than 64 MiB
		mustDo(t, db.Attachments.Restore(ctx, s.ID, "a.txt", 11))
		check("", "2 dropped, 4 dropped, 6 deleted, 10 dropped, 11 dropped, 12, 13, 14, 15, 16, 17, 18, 19, 20")
		for step := range int64(store.MaxAttachmentVersions) + 1 {
			put(100+step, "")
		}
		kept := 0
		for _, v := range must(db.Attachments.ListVersions(ctx, s.ID))(t) {
			if v.SHA256 != "" && v.SHA256 != store.DroppedVersion {
				kept++
			}
		}
		wantEqual(t, kept, store.MaxAttachmentVersions)
		mustDo(t, db.Attachments.Purge(ctx, s.ID, "a.txt"))
		check("", "")
		wantError(t, db.Attachments.Purge(ctx, s.ID, "a.txt"), store.ErrNotFound)
		put(1000, "again")
		put(1001, "again")
		mustDo(t, db.Sessions.Delete(ctx, s.ID))
		wantEqual(t, len(must(db.Attachments.ListVersions(ctx, s.ID))(t)), 0)
	})
}

// Listing files reads no content: on SQLite, a column that follows the content in a
// row can be read only after it.
func TestListAttachmentsReadsOnlyIndex(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	plan := must(store.Explain(t.Context(), db, store.ListAttachmentsSQL, "session", 1))(t)
	if plan != "SEARCH attachments USING COVERING INDEX attachments_list (session=?)" {
		t.Errorf("plan is %q", plan)
	}
}

// The content of a file is found by its hash, in the session of the file only, even if
// a later version replaced it.
func TestAttachmentContent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		s := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		other := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		hash := func(text string) string { return fmt.Sprintf("%064x", len(text)) }
		for step, text := range []string{"first", "second"} {
			mustDo(t, db.Attachments.Put(ctx, store.Attachment{Session: s.ID, Path: "a.txt", Step: int64(step), SHA256: hash(text)}, []byte(text)))
		}
		for _, text := range []string{"first", "second"} {
			wantEqual(t, string(must(db.Attachments.ReadContent(ctx, s.ID, hash(text)))(t)), text)
			_, err := db.Attachments.ReadContent(ctx, other.ID, hash(text))
			wantError(t, err, store.ErrNotFound)
		}
		mustDo(t, db.Attachments.Purge(ctx, s.ID, "a.txt"))
		_, err := db.Attachments.ReadContent(ctx, s.ID, hash("first"))
		wantError(t, err, store.ErrNotFound)
	})
}
