package store_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A label is used once by each principal of a session, and goes with it.
func TestSent(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		session := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		s := store.SentMessage{Session: session.ID, Principal: "ada", Label: "1", Digest: "sha256:00", Input: 7}
		mustDo(t, db.SentMessages.Add(ctx, s))
		wantEqual(t, must(db.SentMessages.Get(ctx, session.ID, "ada", "1"))(t), s)
		wantError(t, db.SentMessages.Add(ctx, s), store.ErrExists)
		for _, other := range []store.SentMessage{{Label: "2"}, {Principal: "eve"}, {Label: strings.Repeat("x", store.MaxLabel)}} {
			o := s
			if other.Label != "" {
				o.Label = other.Label
			}
			if other.Principal != "" {
				o.Principal = other.Principal
			}
			mustDo(t, db.SentMessages.Add(ctx, o))
		}
		none := s
		none.Session = "none"
		wantError(t, db.SentMessages.Add(ctx, none), store.ErrNotFound)
		long := s
		long.Label = strings.Repeat("x", store.MaxLabel+1)
		wantError(t, db.SentMessages.Add(ctx, long), store.ErrInvalid)
		mustDo(t, db.Sessions.Delete(ctx, session.ID))
		_, err := db.SentMessages.Get(ctx, session.ID, "ada", "1")
		wantError(t, err, store.ErrNotFound)
	})
}
