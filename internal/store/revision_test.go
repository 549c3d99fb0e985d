package store_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Whoever caches what depends on secrets compares their revision.
func TestSecretsRevision(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		must(db.Users.Create(ctx, store.User{ID: "ada", Name: "ada"}))(t)
		must(db.Groups.Create(ctx, store.Group{ID: "team", Name: "team"}))(t)
		secret := func(owner string) store.Secret {
			return store.Secret{Owner: owner, Name: "key", Encrypted: []byte{1}, KeyID: "k"}
		}
		grant := func(id, session string) store.Grant {
			return store.Grant{ID: id, Principal: "p", Subject: "d", Session: session, Data: []byte(`{}`), Expires: time.Now().Add(-time.Hour)}
		}
		team := store.GroupNamespace("team")
		for _, c := range []struct {
			name    string
			changes bool
			do      func() error
		}{
			{"put secret", true, func() error { return db.Secrets.Put(ctx, secret("user:ada")) }},
			{"replace secret", true, func() error { return db.Secrets.Put(ctx, secret("user:ada")) }},
			{"delete secret", true, func() error { return db.Secrets.Delete(ctx, "user:ada", "key") }},
			{"delete missing secret", false, func() error { return ignore(db.Secrets.Delete(ctx, "user:ada", "key"), store.ErrNotFound) }},
			{"put another", true, func() error { return db.Secrets.Put(ctx, secret(string(team))) }},
			{"put secret of a session", false, func() error { return db.Secrets.Put(ctx, secret("session:s")) }},
			{"delete secret of a session", false, func() error { return db.Secrets.Delete(ctx, "session:s", "key") }},
			{"delete by owner", true, func() error { _, err := db.Secrets.DeleteByOwner(ctx, string(team)); return err }},
			{"delete none by owner", false, func() error { _, err := db.Secrets.DeleteByOwner(ctx, string(team)); return err }},
			{"put another again", true, func() error { return db.Secrets.Put(ctx, secret(string(team))) }},
			{"delete group", true, func() error { return db.Groups.Delete(ctx, "team") }},
			{"grant", true, func() error { return db.Grants.Put(ctx, grant("1", "")) }},
			{"grant for a session", false, func() error { return db.Grants.Put(ctx, grant("2", "s")) }},
			{"revoke", true, func() error { _, err := db.Grants.Delete(ctx, "1"); return err }},
			{"revoke nothing", false, func() error { _, err := db.Grants.Delete(ctx, "1"); return ignore(err, store.ErrNotFound) }},
			{"revoke same", true, func() error { return db.Grants.DeleteSame(ctx, "2", []byte(`{}`)) }},
			{"grant again", true, func() error { return db.Grants.Put(ctx, grant("3", "")) }},
			{"prune", true, func() error { _, err := db.Grants.Prune(ctx, time.Now()); return err }},
			{"sign in", true, func() error {
				return db.SignIns.Put(ctx, store.SignIn{UserID: "ada", Server: []byte{1}, Encrypted: []byte{1}, KeyID: "k"})
			}},
			{"sign in again", true, func() error { return db.SignIns.MarkStarted(ctx, "ada", []byte{1}) }},
			{"sign out", true, func() error { return db.SignIns.Delete(ctx, "ada", []byte{1}) }},
			{"sign out again", false, func() error { return db.SignIns.Delete(ctx, "ada", []byte{1}) }},
		} {
			before := revisionOf(ctx, t, db)
			mustDo(t, c.do())
			if after := revisionOf(ctx, t, db); (after > before) != c.changes {
				t.Errorf("%s: revision %d after %d, want a change: %t", c.name, after, before, c.changes)
			}
		}
	})
}

// PlatformRevision counts changes to platform values of owners other than sessions,
// and to their grants.
func TestPlatformRevision(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		put := func(owner, name string) func() error {
			return func() error {
				return db.Secrets.Put(ctx, store.Secret{Owner: owner, Name: name, Encrypted: []byte{1}})
			}
		}
		grant := func(id, name string) func() error {
			return func() error {
				return db.Grants.Put(ctx, store.Grant{ID: id, Principal: "p", Subject: "d", Name: name, Data: []byte("{}")})
			}
		}
		revoke := func(id string) func() error {
			return func() error { _, err := db.Grants.Delete(ctx, id); return err }
		}
		for _, c := range []struct {
			name    string
			changes bool
			do      func() error
		}{
			{"another secret", false, put("group:g", "KEY")},
			{"value", true, put("group:g", "variable.x")},
			{"same value", true, put("group:g", "variable.x")},
			{"value of a session", false, put("session:s", "variable.x")},
			{"another grant", false, grant("a", "tool")},
			{"grant", true, grant("b", "variable.x")},
			{"revoke another", false, revoke("a")},
			{"revoke", true, revoke("b")},
			{"delete value", true, func() error { return db.Secrets.Delete(ctx, "group:g", "variable.x") }},
			{"delete owner", true, func() error { _, err := db.Secrets.DeleteByOwner(ctx, "group:g"); return err }},
		} {
			before := must(db.Revisions(ctx))(t)[store.PlatformRevision]
			mustDo(t, c.do())
			if after := must(db.Revisions(ctx))(t)[store.PlatformRevision]; (after > before) != c.changes {
				t.Errorf("%s: revision %d after %d, want a change: %t", c.name, after, before, c.changes)
			}
		}
	})
}

// PlatformState changes with the platform values of its owners and the grants to its
// principals, and with nothing else.
func TestPlatformState(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx := t.Context()
		put := func(owner, name string) func() error {
			return func() error {
				return db.Secrets.Put(ctx, store.Secret{Owner: owner, Name: name, Encrypted: []byte{1}})
			}
		}
		grant := func(id, principal string) func() error {
			return func() error {
				return db.Grants.Put(ctx, store.Grant{ID: id, Principal: principal, Subject: "d", Name: "variable.x", Data: []byte("{}")})
			}
		}
		state := func() string {
			return must(db.Secrets.PlatformState(ctx, []string{"user:a", "group:g"}, []string{"variable:user:a", "variable:group:g"}))(t)
		}
		for _, c := range []struct {
			name    string
			changes bool
			do      func() error
		}{
			{"value", true, put("user:a", "variable.x")},
			{"another owner's value", false, put("user:b", "variable.x")},
			{"secret", false, put("user:a", "KEY")},
			{"second value", true, put("group:g", "variable.x")},
			{"delete value", true, func() error { return db.Secrets.Delete(ctx, "group:g", "variable.x") }},
			{"grant", true, grant("1", "variable:group:g")},
			{"same grant again", true, grant("1", "variable:group:g")},
			{"another owner's grant", false, grant("2", "variable:user:b")},
			{"grant of a secret", false, grant("3", "secret:user:a")},
			{"revoke", true, func() error { _, err := db.Grants.Delete(ctx, "1"); return err }},
		} {
			before := state()
			mustDo(t, c.do())
			if after := state(); (after != before) != c.changes {
				t.Errorf("%s: state %q after %q, want a change: %t", c.name, after, before, c.changes)
			}
		}
		before := state()
		for state() == before { // a new value at most a millisecond later
			mustDo(t, put("user:a", "variable.x")())
		}
	})
}

// Prune reads each session by its ID.
func TestPruneSecretsUsesIndex(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	plan := must(store.Explain(t.Context(), db, store.PruneSecrets))(t)
	if !strings.Contains(plan, "SEARCH s USING") {
		t.Error(plan)
	}
}

func revisionOf(ctx context.Context, t *testing.T, db *store.DB) int64 {
	t.Helper()
	return must(db.Revisions(ctx))(t)[store.SecretsRevision]
}

func ignore(err, want error) error {
	if errors.Is(err, want) {
		return nil
	}
	return err
}
