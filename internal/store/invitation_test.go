package store_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// newInvitation adds an invitation that expires in an hour, unless i says otherwise.
func newInvitation(t testing.TB, db *store.DB, i store.Invitation) store.Invitation {
	t.Helper()
	if i.Prefix == "" {
		i.Prefix = "li_" + store.NewID()
	}
	if i.Expires.IsZero() {
		i.Expires = time.Now().Add(time.Hour)
	}
	i.Hash, i.Uses, i.Inviter = []byte("hash"), max(i.Uses, 1), "ada"
	return must(db.Invitations.Create(t.Context(), i))(t)
}

// invitees adds users and a group.
func invitees(t testing.TB, db *store.DB, names ...string) {
	t.Helper()
	for _, name := range names {
		must(db.Users.Create(t.Context(), store.User{ID: name, Name: name}))(t)
	}
	must(db.Groups.Create(t.Context(), store.Group{ID: "web", Name: "web"}))(t)
}

func TestInvitations(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		invitees(t, db, "ada", "bob", "eve")
		hub := newInvitation(t, db, store.Invitation{Prefix: "li_hub", Note: "for bob"})
		group := newInvitation(t, db, store.Invitation{Prefix: "li_web", GroupID: "web", Role: store.Developer, Uses: 2})
		wantEqual(t, must(db.Invitations.Get(ctx, hub.ID))(t), hub)
		wantEqual(t, must(db.Invitations.ByPrefix(ctx, "li_web"))(t), group)
		for name, i := range map[string]store.Invitation{
			"no group":   {Prefix: "li_1", GroupID: "none", Inviter: "ada", Hash: []byte{1}},
			"no inviter": {Prefix: "li_2", Inviter: "none", Hash: []byte{1}},
		} {
			if _, err := db.Invitations.Create(ctx, i); !errors.Is(err, store.ErrNotFound) {
				t.Errorf("%s: %v", name, err)
			}
		}
		_, err := db.Invitations.Create(ctx, store.Invitation{Prefix: "li_hub", Inviter: "ada", Hash: []byte{1}})
		wantError(t, err, store.ErrExists)

		list := func(group string) (ids []string) {
			t.Helper()
			for after := ""; ; {
				page, next, err := db.Invitations.List(ctx, group, store.Page{After: after, Limit: 1})
				mustDo(t, err)
				for _, i := range page {
					ids = append(ids, i.ID)
				}
				if after = next; after == "" {
					return ids
				}
			}
		}
		wantEqual(t, list(""), []string{group.ID, hub.ID})
		wantEqual(t, list("web"), []string{group.ID})

		// Two users may use it once each.
		mustDo(t, db.Invitations.Use(ctx, group.ID, "bob"))
		wantError(t, db.Invitations.Use(ctx, group.ID, "bob"), store.ErrExists)
		wantEqual(t, must(db.Invitations.CountOpen(ctx, "web"))(t), int64(1))
		mustDo(t, db.Invitations.Use(ctx, group.ID, "eve"))
		wantError(t, db.Invitations.Use(ctx, group.ID, "ada"), store.ErrNotFound)
		wantEqual(t, must(db.Invitations.CountOpen(ctx, "web"))(t), int64(0))
		wantEqual(t, must(db.Invitations.CountOpen(ctx, ""))(t), int64(1))
		uses := must(db.Invitations.Users(ctx, []string{hub.ID, group.ID}))(t)
		if len(uses) != 2 || uses[0].UserID != "bob" || uses[1].Invitation != group.ID || uses[1].Used.IsZero() {
			t.Errorf("it was used by %+v", uses)
		}

		// A revoked or expired one is used by nobody.
		mustDo(t, db.Invitations.Revoke(ctx, hub.ID))
		revoked := must(db.Invitations.Get(ctx, hub.ID))(t).Revoked
		mustDo(t, db.Invitations.Revoke(ctx, hub.ID))
		if again := must(db.Invitations.Get(ctx, hub.ID))(t).Revoked; revoked.IsZero() || !again.Equal(revoked) {
			t.Errorf("revoked at %v, then %v", revoked, again)
		}
		wantError(t, db.Invitations.Use(ctx, hub.ID, "bob"), store.ErrNotFound)
		wantError(t, db.Invitations.Revoke(ctx, "none"), store.ErrNotFound)
		old := newInvitation(t, db, store.Invitation{Expires: time.Now().Add(-time.Hour)})
		wantError(t, db.Invitations.Use(ctx, old.ID, "bob"), store.ErrNotFound)

		// They end with their group and their inviter.
		mustDo(t, db.Groups.Delete(ctx, "web"))
		wantEqual(t, list(""), []string{old.ID, hub.ID})
		mustDo(t, db.Users.Delete(ctx, "ada"))
		if left := list(""); len(left) != 0 {
			t.Errorf("without the inviter, there are %v", left)
		}
	})
}

// Of many concurrent users, as many use an invitation as it permits.
func TestInvitationUsesAreAtomic(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		names := []string{"ada"}
		for i := range 8 {
			names = append(names, fmt.Sprint("user", i))
		}
		invitees(t, db, names...)
		i := newInvitation(t, db, store.Invitation{Uses: 3})
		var done sync.WaitGroup
		errs := make([]error, len(names))
		for n, name := range names {
			done.Go(func() { errs[n] = db.Invitations.Use(t.Context(), i.ID, name) })
		}
		done.Wait()
		used := 0
		for _, err := range errs {
			if err == nil {
				used++
			} else if !errors.Is(err, store.ErrNotFound) {
				t.Error(err)
			}
		}
		if got := must(db.Invitations.Get(t.Context(), i.ID))(t).Used; used != 3 || got != 3 {
			t.Errorf("%d users used it, and it counts %d", used, got)
		}
	})
}

// Ended invitations are deleted when they are old, or too many.
func TestEndedInvitationsAreDeleted(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		invitees(t, db, "ada", "bob")
		open := newInvitation(t, db, store.Invitation{})
		other := newInvitation(t, db, store.Invitation{GroupID: "web", Role: store.Reporter, Expires: time.Now().Add(-time.Minute)})
		var ended []string
		for range 3 {
			i := newInvitation(t, db, store.Invitation{})
			mustDo(t, db.Invitations.Revoke(ctx, i.ID))
			ended = append(ended, i.ID)
		}
		left := func() string {
			t.Helper()
			found, _, err := db.Invitations.List(ctx, "", store.Page{})
			mustDo(t, err)
			var ids []string
			for _, i := range found {
				ids = append(ids, i.ID)
			}
			return strings.Join(ids, " ")
		}
		mustDo(t, db.Invitations.TrimEnded(ctx, "", 1))
		wantEqual(t, left(), strings.Join([]string{ended[2], other.ID, open.ID}, " "))
		wantEqual(t, must(db.Invitations.Prune(ctx, time.Now().Add(-time.Hour)))(t), int64(0))
		wantEqual(t, must(db.Invitations.Prune(ctx, time.Now().Add(time.Second)))(t), int64(2))
		wantEqual(t, left(), open.ID)
	})
}
