package store_test

import (
	"fmt"
	"testing"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestFolders(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		ada, bob := newUser(t, db, "ada"), newUser(t, db, "bob")
		work := must(db.Folders.Create(ctx, store.Folder{Owner: ada.ID, Name: "Work"}))(t)
		wantEqual(t, must(db.Folders.Get(ctx, work.ID))(t), work)
		_, err := db.Folders.Create(ctx, store.Folder{Owner: ada.ID, Name: "Work"})
		wantError(t, err, store.ErrExists)
		_, err = db.Folders.Create(ctx, store.Folder{Owner: "nobody", Name: "Work"})
		wantError(t, err, store.ErrNotFound)
		must(db.Folders.Create(ctx, store.Folder{Owner: bob.ID, Name: "Work"}))(t)
		home := must(db.Folders.Create(ctx, store.Folder{Owner: ada.ID, Name: "Home"}))(t)
		wantError(t, db.Folders.Rename(ctx, home.ID, "Work"), store.ErrExists)
		wantError(t, db.Folders.Rename(ctx, "none", "x"), store.ErrNotFound)
		mustDo(t, db.Folders.Rename(ctx, home.ID, "At home"))
		home.Name = "At home"

		var filed []store.Session
		for _, s := range []store.Session{{Folder: work.ID}, {Folder: work.ID, Pinned: true}, {Folder: work.ID, Archived: true}, {}} {
			s.Owner = ada.ID
			filed = append(filed, must(db.Sessions.Create(ctx, s))(t))
		}
		wantEqual(t, must(db.Folders.List(ctx, ada.ID))(t), []store.CountedFolder{{Folder: home}, {Folder: work, Sessions: 2, Pinned: 1}})

		// The sessions of a deleted folder remain.
		mustDo(t, db.Folders.Delete(ctx, work.ID))
		wantError(t, db.Folders.Delete(ctx, work.ID), store.ErrNotFound)
		for _, s := range filed {
			got := must(db.Sessions.Get(ctx, s.ID))(t)
			if changed := s.Folder != ""; got.Folder != "" || (got.Generation > s.Generation) != changed {
				t.Errorf("after its folder was deleted: %+v", got)
			}
		}

		for i := range store.MaxFolders - 1 {
			must(db.Folders.Create(ctx, store.Folder{Owner: ada.ID, Name: fmt.Sprint("folder ", i)}))(t)
		}
		_, err = db.Folders.Create(ctx, store.Folder{Owner: ada.ID, Name: "one more"})
		wantError(t, err, store.ErrTooMany)
		wantEqual(t, len(must(db.Folders.List(ctx, bob.ID))(t)), 1)

		// A user's folders are deleted with the user.
		mustDo(t, db.Users.Delete(ctx, bob.ID))
		wantEqual(t, len(must(db.Folders.List(ctx, bob.ID))(t)), 0)
	})
}

// Lists start with the pinned sessions. Their pages neither skip nor repeat a session.
func TestListOfOrganizedSessions(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		name := map[string]string{}
		for _, s := range []store.Session{ // oldest first
			{Title: "a", Pinned: true}, {Title: "b"}, {Title: "c", Folder: "f"}, {Title: "d", Folder: "f", Pinned: true}, {Title: "e", Archived: true},
			{Title: "f", Pinned: true}, {Title: "g"}, {Title: "h", Archived: true, Folder: "f", Pinned: true}, {Title: "i", Folder: "g"}, {Title: "j"},
		} {
			s.Owner = "ada"
			made := must(db.Sessions.Create(ctx, s))(t)
			name[made.ID] = s.Title
			wantEqual(t, must(db.Sessions.Get(ctx, made.ID))(t), made)
		}
		must(db.Sessions.Create(ctx, store.Session{Owner: "bob", Pinned: true}))(t)
		for _, tt := range []struct {
			q    store.SessionQuery
			want string
		}{
			{store.SessionQuery{}, "fdajigcb"},
			{store.SessionQuery{Unfiled: true}, "fdajgb"},
			{store.SessionQuery{Folder: "f"}, "dc"},
			{store.SessionQuery{Folder: "none"}, ""},
			{store.SessionQuery{Archived: true}, "he"},
			{store.SessionQuery{Archived: true, Folder: "f"}, "h"},
		} {
			got := ""
			for _, s := range every(t, func(p store.Page) ([]store.Session, string, error) {
				q := tt.q
				q.Owner, q.Page = "ada", p
				return db.Sessions.List(ctx, q)
			}) {
				got += name[s.ID]
			}
			if got != tt.want {
				t.Errorf("%+v lists %s, want %s", tt.q, got, tt.want)
			}
		}
		// Changes are stored, and do not repeat a session on the next page.
		all, next, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Page: store.Page{Limit: 4}})
		mustDo(t, err)
		all[3].Pinned = true
		must(db.Sessions.Update(ctx, all[3]))(t)
		rest, _, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Page: store.Page{After: next}})
		mustDo(t, err)
		wantEqual(t, names(rest, func(s store.Session) string { return name[s.ID] }), []string{"i", "g", "c", "b"})
		for _, cursor := range []string{"x", "WyJhIiwiYiJd", "WyJhIl0"} { // ["a","b"], ["a"]
			_, _, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Page: store.Page{After: cursor}})
			wantError(t, err, store.ErrInvalid)
		}
	})
}

// Sessions of older programs are neither pinned nor archived, and in no folder.
func TestSessionsBeforeFolders(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		old := must(store.OpenAt(ctx, address, 24))(t)
		must(store.Exec(ctx, old, "INSERT INTO sessions (id, owner, title, agent, data, generation, created, updated) VALUES ('s', 'ada', 'Tides', '', '{}', 3, 1000, 2000)"))(t)
		mustDo(t, old.Close())
		db := storetest.Open(t, address)
		got, _, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Unfiled: true})
		mustDo(t, err)
		wantEqual(t, got, []store.Session{must(db.Sessions.Get(ctx, "s"))(t)})
		if s := got[0]; s.Title != "Tides" || s.TitleSource != "user" || s.Folder != "" || s.Pinned || s.Archived {
			t.Errorf("got %+v", s)
		}
	})
}
