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
		for _, cursor := range []string{"x", "WyJhIiwiYiJd", "WyJhIl0", "WyJ0cnVlIiwieCIsImIiXQ"} { // ["a","b"], ["a"], ["true","x","b"]
			_, _, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Page: store.Page{After: cursor}})
			wantError(t, err, store.ErrInvalid)
		}
	})
}

// Lists are sorted by the last message. A message moves a session to the start of its
// part of the list, and a page that follows neither skips nor repeats another one.
func TestSessionsByLastMessage(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		name := map[string]string{}
		var made []store.Session
		for i, s := range []store.Session{{Title: "a"}, {Title: "b"}, {Title: "c", Pinned: true}, {Title: "d"}, {Title: "e", Pinned: true}} {
			s.Owner, s.Created = "ada", at(i+1)
			made = append(made, must(db.Sessions.Create(ctx, s))(t))
			name[made[i].ID] = s.Title
		}
		list := func(p store.Page) (string, string) {
			t.Helper()
			found, next, err := db.Sessions.List(ctx, store.SessionQuery{Owner: "ada", Page: p})
			mustDo(t, err)
			out := ""
			for _, s := range found {
				out += name[s.ID]
			}
			return out, next
		}
		got, _ := list(store.Page{})
		wantEqual(t, got, "ecdba")
		made[2].LastMessage = at(9)
		must(db.Sessions.Update(ctx, made[2]))(t)
		made[0].LastMessage = at(3)
		must(db.Sessions.Update(ctx, made[0]))(t)
		first, next := list(store.Page{Limit: 3})
		wantEqual(t, first, "ced")
		made[1].LastMessage = at(10)
		must(db.Sessions.Update(ctx, made[1]))(t)
		rest, _ := list(store.Page{After: next})
		wantEqual(t, rest, "a")
		got, _ = list(store.Page{})
		wantEqual(t, got, "cebda")
	})
}

// The last message of a session of an older program is the last one in its inbox, or
// its creation.
func TestSessionsBeforeLastMessage(t *testing.T) {
	eachAddress(t, func(t *testing.T, address string) {
		ctx := t.Context()
		old := must(store.OpenAt(ctx, address, 30))(t)
		for _, id := range []string{"one", "two"} {
			must(store.Exec(ctx, old, "INSERT INTO sessions (id, owner, title, agent, data, generation, created, updated) VALUES ('"+id+"', 'ada', '', '', '{}', 3, 1000, 9000)"))(t)
		}
		for _, e := range []string{"'one/in', 1, 'message', '{}', 2000", "'one/in', 2, 'message', '{}', 3000", "'one/in', 3, 'cancel', '{}', 4000", "'one', 1, 'message', '{}', 5000"} {
			must(store.Exec(ctx, old, "INSERT INTO events (stream, seq, kind, data, created) VALUES ("+e+")"))(t)
		}
		mustDo(t, old.Close())
		db := storetest.Open(t, address)
		for id, want := range map[string]int64{"one": 3000, "two": 1000} {
			if s := must(db.Sessions.Get(ctx, id))(t); s.LastMessage.UnixMilli() != want || s.Updated.UnixMilli() != 9000 {
				t.Errorf("got %+v, want the last message at %d", s, want)
			}
		}
		older, err := store.OpenAt(ctx, address, 30)
		wantError(t, err, store.ErrTooNew)
		mustDo(t, older.Close())
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
