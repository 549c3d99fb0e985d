package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// A share is found until it expires, is deleted, or its session is.
func TestShares(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		session := must(db.Sessions.Create(ctx, store.Session{Owner: "ada"}))(t)
		link := func(c string) string { return strings.Repeat(c, 26) }
		later := time.Now().Add(time.Hour)
		first := must(db.Shares.Create(ctx, store.Share{Link: link("a"), Session: session.ID, Owner: "ada", Audience: "members", Title: "Tides", Expires: later}, []byte("\x00snapshot")))(t)
		wantEqual(t, must(db.Shares.Get(ctx, first.ID))(t), first)
		wantEqual(t, must(db.Shares.ByLink(ctx, link("a")))(t), first)
		wantEqual(t, string(must(db.Shares.Snapshot(ctx, first.ID))(t)), "\x00snapshot")
		wantEqual(t, first.Size, int64(len("\x00snapshot")))

		create := func(s store.Share, data string) (store.Share, error) {
			return db.Shares.Create(ctx, s, []byte(data))
		}
		_, err := create(store.Share{Link: link("a"), Session: session.ID, Owner: "ada", Audience: "link", Expires: later}, "x")
		wantError(t, err, store.ErrExists)
		_, err = create(store.Share{Link: link("b"), Session: "none", Owner: "ada", Audience: "link", Expires: later}, "x")
		wantError(t, err, store.ErrNotFound)
		_, err = create(store.Share{Link: "short", Session: session.ID, Owner: "ada", Audience: "link", Expires: later}, "x")
		wantError(t, err, store.ErrInvalid)
		_, err = create(store.Share{Link: link("b"), Session: session.ID, Owner: "ada", Audience: "link", Expires: later}, strings.Repeat("x", store.MaxValue+1))
		wantError(t, err, store.ErrInvalid)

		// Files count toward the size.
		image := store.ShareFile{Ref: strings.Repeat("1", 64), Type: "image/png", Data: []byte("png")}
		file := store.ShareFile{Ref: strings.Repeat("2", 64), Name: "a/b.txt", Data: []byte("t")}
		with := must(db.Shares.Create(ctx, store.Share{Link: link("f"), Session: session.ID, Owner: "ada", Audience: "members", Expires: later}, []byte("x"), image, file))(t)
		wantEqual(t, with.Size, int64(5))
		wantEqual(t, must(db.Shares.File(ctx, with.ID, image.Ref))(t), image)
		wantEqual(t, must(db.Shares.File(ctx, with.ID, file.Ref))(t), file)
		_, err = db.Shares.File(ctx, first.ID, image.Ref)
		wantError(t, err, store.ErrNotFound)
		mustDo(t, db.Shares.Delete(ctx, with.ID))
		_, err = db.Shares.File(ctx, with.ID, image.Ref)
		wantError(t, err, store.ErrNotFound)

		// Expired.
		old := must(create(store.Share{Link: link("o"), Session: session.ID, Owner: "ada", Audience: "members", Expires: time.Now().Add(-time.Hour)}, "old"))(t)
		_, err = db.Shares.Get(ctx, old.ID)
		wantError(t, err, store.ErrNotFound)
		_, err = db.Shares.ByLink(ctx, old.Link)
		wantError(t, err, store.ErrNotFound)

		// Lists and totals.
		hers := must(db.Sessions.Create(ctx, store.Session{Owner: "eve"}))(t)
		var all []store.Share
		for _, c := range []string{"c", "d", "e"} {
			all = append(all, must(create(store.Share{Link: link(c), Session: hers.ID, Owner: "eve", Audience: "link", Expires: later}, "eve's"))(t))
		}
		newest := []store.Share{all[2], all[1], all[0]}
		wantEqual(t, every(t, func(p store.Page) ([]store.Share, string, error) { return db.Shares.List(ctx, "eve", p) }), newest)
		wantEqual(t, every(t, func(p store.Page) ([]store.Share, string, error) { return db.Shares.List(ctx, "", p) }), append(newest, first))
		wantEqual(t, must(db.Shares.Total(ctx, "eve"))(t), store.Amount{Count: 3, Bytes: 15})
		wantEqual(t, must(db.Storage.Bytes(ctx, "user:eve"))(t), int64(15))
		wantEqual(t, must(db.Shares.Total(ctx, "ada"))(t), store.Amount{Count: 1, Bytes: first.Size})

		// A view counts once a day for each viewer.
		for i, viewer := range []string{"eve", "", "eve", ""} {
			wantEqual(t, must(db.Shares.Viewed(ctx, first.ID, viewer))(t), i >= 2)
			wantEqual(t, must(db.Shares.AddView(ctx, first.ID, viewer))(t), i < 2)
		}
		_, err = db.Shares.AddView(ctx, "none", "eve")
		wantError(t, err, store.ErrNotFound)

		wantEqual(t, must(db.Shares.Prune(ctx))(t), int64(1))
		mustDo(t, db.Shares.Delete(ctx, first.ID))
		wantError(t, db.Shares.Delete(ctx, first.ID), store.ErrNotFound)
		_, err = db.Shares.Snapshot(ctx, first.ID)
		wantError(t, err, store.ErrNotFound)
		mustDo(t, db.Sessions.Delete(ctx, hers.ID))
		wantEqual(t, must(db.Shares.Total(ctx, "eve"))(t), store.Amount{})
		_, err = db.Shares.ByLink(ctx, link("c"))
		wantError(t, err, store.ErrNotFound)
	})
}

// The secrets of namespaces include those of their skills and resources.
func TestSecretsOfNamespaces(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, eve := newUser(t, db, "ada"), newUser(t, db, "eve")
		mine, hers := store.UserNamespace(ada.ID), store.UserNamespace(eve.ID)
		skill, other := newSkill(t, db, mine, "tides"), newSkill(t, db, hers, "ships")
		session := must(db.Sessions.Create(ctx, store.Session{Owner: ada.ID}))(t)
		for owner, name := range map[string]string{string(mine): "own", string(hers): "foreign", "skill:" + skill.ID: "skill", "skill:" + other.ID: "foreign",
			"session:" + session.ID: "session", string(store.Public): "public", "server:none": "foreign"} {
			mustDo(t, db.Secrets.Put(ctx, store.Secret{Owner: owner, Name: name, Encrypted: []byte(name), KeyID: "k"}))
		}
		names := map[string]bool{}
		for _, s := range must(db.Secrets.ListByNamespaces(ctx, session.ID, []store.Namespace{store.Public, mine}, 10))(t) {
			wantEqual(t, string(s.Encrypted), s.Name)
			names[s.Name] = true
		}
		wantEqual(t, names, map[string]bool{"own": true, "skill": true, "session": true, "public": true})
		wantEqual(t, len(must(db.Secrets.ListByNamespaces(ctx, session.ID, []store.Namespace{mine}, 2))(t)), 2)
	})
}
