package users_test

import (
	"context"
	"net/netip"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/limittest"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Whichever step of an operation fails, the operation fails. A read never returns a
// part of the answer, and what a change reports as done can be read.
func TestOperationsFailWithTheirSteps(t *testing.T) {
	p := core(t, storetest.Open(t, storetest.SQLite(t)))
	ctx := t.Context()
	read := func(name string, op func(ctx context.Context) (any, error)) {
		t.Helper()
		want, err := op(ctx)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		limittest.CancelAtEach(t, func(ctx context.Context) error {
			got, err := op(ctx)
			if diff := cmp.Diff(want, got); err == nil && diff != "" {
				t.Errorf("%s: %s", name, diff)
			}
			return err
		})
	}
	change := func(name string, op func(ctx context.Context) error, done func() bool) {
		t.Helper()
		if done() {
			t.Errorf("%s: done before it began", name)
		}
		if limittest.CancelAtEach(t, op); !done() {
			t.Errorf("%s: not done, without an error", name)
		}
	}
	list := func(op func(ctx context.Context) (any, string, error)) func(ctx context.Context) (any, error) {
		return func(ctx context.Context) (any, error) {
			all, next, err := op(ctx)
			return []any{all, next}, err
		}
	}
	user := func(id account.UserID) users.User {
		u, err := p.Users.Get(ctx, boss, id)
		if err != nil {
			return users.User{}
		}
		return u
	}
	var ann users.User
	change("create a user", func(ctx context.Context) (err error) {
		ann, err = p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Email: "ann@example.com", Password: password})
		return err
	}, func() bool { return user(ann.ID).Name == "ann" })
	var team users.Group
	change("create a group", func(ctx context.Context) (err error) {
		team, err = p.Groups.Create(ctx, boss, "team", users.GroupChange{})
		return err
	}, func() bool { _, err := p.Groups.Get(ctx, boss, team.ID); return err == nil })
	role := func() account.Role { return as(t, p, ann.ID).Groups[team.ID] }
	change("add a member", func(ctx context.Context) error {
		return p.Groups.SetRole(ctx, boss, team.ID, ann.ID, account.Developer)
	}, func() bool { return role() == account.Developer })
	me := as(t, p, ann.ID)
	read("users", list(func(ctx context.Context) (any, string, error) { return p.Users.List(ctx, boss, store.Page{}) }))
	read("user", func(ctx context.Context) (any, error) { return p.Users.Get(ctx, boss, ann.ID) })
	read("user by name", func(ctx context.Context) (any, error) { return p.Users.ByName(ctx, boss, "ann") })
	read("groups", list(func(ctx context.Context) (any, string, error) { return p.Groups.List(ctx, boss, store.Page{}) }))
	read("groups of a user", list(func(ctx context.Context) (any, string, error) { return p.Groups.List(ctx, me, store.Page{}) }))
	read("group", func(ctx context.Context) (any, error) { return p.Groups.Get(ctx, me, team.ID) })
	read("members", list(func(ctx context.Context) (any, string, error) {
		return p.Groups.Members(ctx, me, team.ID, store.Page{})
	}))
	read("principal", func(ctx context.Context) (any, error) { return p.SignIns.Principal(ctx, ann.ID) })
	read("no admin", func(ctx context.Context) (any, error) { return p.SignIns.HasNoAdmin(ctx) })
	read("rules", func(ctx context.Context) (any, error) { return p.SignIns.Rules(ctx, boss) })
	read("quotas", func(ctx context.Context) (any, error) { return p.Quotas.Settings(ctx, boss) })
	read("usage", func(ctx context.Context) (any, error) {
		return p.Quotas.Usage(ctx, boss, store.UserNamespace(string(ann.ID)))
	})
	read("retention", func(ctx context.Context) (any, error) { return p.Audit.Retention(ctx, boss) })
	read("audit log", func(ctx context.Context) (any, error) { return p.Audit.List(ctx, boss, store.AuditQuery{Limit: 10}) })
	network := netip.MustParsePrefix("192.0.2.0/24")
	knows := func() bool { return must(p.SignIns.KnowsNetwork(ctx, "ann", network))(t) }
	change("remember a network", func(ctx context.Context) error { return p.SignIns.RememberNetwork(ctx, ann.ID, network) }, knows)
	read("known network", func(ctx context.Context) (any, error) { return p.SignIns.KnowsNetwork(ctx, "ann", network) })
	tokens := func() []account.Token { return must(p.Tokens.List(ctx, me, me.User))(t) }
	change("create a token", func(ctx context.Context) error {
		_, _, err := p.Tokens.Create(ctx, me, "ci", account.AllScopes, time.Hour)
		return err
	}, func() bool { return len(tokens()) == 1 })
	read("tokens", func(ctx context.Context) (any, error) { return p.Tokens.List(ctx, me, me.User) })
	id := tokens()[0].ID
	read("scopes", func(ctx context.Context) (any, error) { return p.Tokens.ValidScopes(ctx, id) })
	change("revoke a token", func(ctx context.Context) error { return p.Tokens.Revoke(ctx, me, me.User, id) }, func() bool { return len(tokens()) == 0 })
	read("logins", func(ctx context.Context) (any, error) { return p.SignIns.List(ctx, me, me.User) })
	change("set a password", func(ctx context.Context) error {
		return p.Users.SetPassword(ctx, boss, ann.ID, users.PasswordChange{Password: "another " + password})
	}, func() bool {
		_, err := p.SignIns.ByPassword(ctx, account.UserClient("x"), "ann", "another "+password, login(time.Now().String()))
		return err == nil
	})
	email := "new@example.com"
	change("change a user", func(ctx context.Context) error {
		_, err := p.Users.Change(ctx, boss, ann.ID, users.UserChange{Email: &email})
		return err
	}, func() bool { return user(ann.ID).Email == email })
	change("remove a member", func(ctx context.Context) error { return p.Groups.SetRole(ctx, boss, team.ID, ann.ID, account.Outsider) }, func() bool { return role() == account.Outsider })
	change("delete a group", func(ctx context.Context) error { return p.Groups.Delete(ctx, boss, team.ID) }, func() bool { _, err := p.Groups.Get(ctx, boss, team.ID); return err != nil })
	change("delete a user", func(ctx context.Context) error { return p.Users.Delete(ctx, boss, ann.ID) }, func() bool { return user(ann.ID).Name == "" })
}
