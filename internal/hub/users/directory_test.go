package users_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func TestMain(m *testing.M) {
	code := storetest.Main(m)
	if err := goleak.Find(); code == 0 && err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		code = 1
	}
	os.Exit(code)
}

// must returns a result, or ends the test.
func must[T any](v T, err error) func(fataler) T {
	return func(t fataler) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return v
	}
}

func mustDo(t fataler, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// fataler is a test, also one of rapid.
type fataler interface {
	Helper()
	Fatal(args ...any)
}

func wantError(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("error is %v, want %v", err, want)
	}
}

const password = "a long enough one"

var boss = account.Principal{User: "boss", Name: "boss", Admin: true, Scopes: account.AllScopes}

// core returns the users of a database with an administrator.
func core(t fataler, db *store.DB) *users.Directory {
	t.Helper()
	sealer, err := encryption.New(encryption.NewKey())
	mustDo(t, err)
	p := users.New(db, users.Options{Passwords: account.NewPasswords(account.Cost{Memory: 64, Time: 1, Lanes: 1}, 1), Cipher: sealer})
	if _, err := db.Users.Create(context.Background(), store.User{ID: "boss", Name: "boss", Admin: true}); err != nil {
		t.Fatal(err)
	}
	return p
}

// as returns a user with the current rights.
func as(t fataler, p *users.Directory, id account.UserID) account.Principal {
	t.Helper()
	return must(p.SignIns.Principal(context.Background(), id))(t)
}

func TestUserDetailsAreVisibleToSelfAndAdmins(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Email: "ann@example.com", Password: password}))(t)
		bob := must(p.Users.Create(ctx, boss, users.NewUser{Name: "bob"}))(t)
		for _, viewer := range []account.Principal{boss, as(t, p, ann.ID)} {
			if u := must(p.Users.Get(ctx, viewer, ann.ID))(t); !u.Full || u.Email != "ann@example.com" || !u.Password {
				t.Errorf("%s sees %+v", viewer.Name, u)
			}
		}
		if u := must(p.Users.ByName(ctx, as(t, p, bob.ID), "ann"))(t); u.Full || u.Email != "" || u.ID != ann.ID {
			t.Errorf("another one sees %+v", u)
		}
	})
}

func TestLastOwnerStays(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Admin: true}))(t).ID
		bob := must(p.Users.Create(ctx, boss, users.NewUser{Name: "bob"}))(t).ID
		g := must(p.Groups.Create(ctx, as(t, p, ann), "web", users.GroupChange{}))(t)
		if g.Role != account.Owner {
			t.Errorf("who makes a group is %s", g.Role)
		}
		wantError(t, p.Groups.SetRole(ctx, as(t, p, ann), g.ID, ann, account.Outsider), users.ErrLastOwner)
		wantError(t, p.Groups.SetRole(ctx, as(t, p, ann), g.ID, ann, account.Reporter), users.ErrLastOwner)
		wantError(t, p.Users.Delete(ctx, boss, ann), users.ErrLastOwner)
		mustDo(t, p.Groups.SetRole(ctx, as(t, p, ann), g.ID, bob, account.Owner))
		mustDo(t, p.Users.Delete(ctx, boss, ann))
		wantError(t, p.Groups.SetRole(ctx, boss, g.ID, bob, account.Developer), users.ErrLastOwner)
		wantError(t, p.Groups.SetRole(ctx, boss, g.ID, "nobody", account.Developer), store.ErrNotFound)
	})
}

func TestUserTokenLimit(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		for range users.MaxTokens {
			_, _, err := p.Tokens.Create(ctx, boss, "ci", account.ScopeRead, 0)
			mustDo(t, err)
		}
		_, _, err := p.Tokens.Create(ctx, boss, "ci", account.ScopeRead, 0)
		wantError(t, err, store.ErrTooMany)
		if n := len(must(p.Tokens.List(ctx, boss, boss.User))(t)); n != users.MaxTokens {
			t.Errorf("there are %d", n)
		}
	})
}

// A token for more than one may is not made, and that it was asked for is recorded.
func TestRefusalsAreRecorded(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := as(t, p, must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann"}))(t).ID)
		g := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t)
		mustDo(t, p.Groups.SetRole(ctx, boss, g.ID, ann.User, account.Maintainer))
		ann = as(t, p, ann.User)
		denied := func(err error) {
			t.Helper()
			if _, ok := errors.AsType[*account.DeniedError](err); !ok {
				t.Errorf("error is %v", err)
			}
		}
		_, _, err := p.Tokens.Create(ctx, ann.LimitedTo(account.ScopeAdmin), "ci", account.ScopeRead, 0)
		denied(err)
		denied(p.Groups.SetRole(ctx, ann, g.ID, ann.User, account.Owner))
		denied(p.Users.Delete(ctx, ann, boss.User))
		_, err = p.Users.Create(ctx, ann, users.NewUser{Name: "eve", Admin: true})
		denied(err)
		_, err = p.SignIns.SetRules(ctx, ann, users.Rules{})
		denied(err)
		records := must(p.Audit.List(ctx, boss, store.AuditQuery{Actor: string(ann.User)}))(t)
		var got []string
		for _, r := range records {
			got = append(got, r.Decision+" "+r.Action)
		}
		want := []string{"denied settings.write", "denied user.manage", "denied user.manage", "denied group.members", "denied token.make"}
		if !slices.Equal(got, want) {
			t.Errorf("the log has %q, want %q", got, want)
		}
	})
}

func TestSignInRules(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID
		ops := must(p.Groups.Create(ctx, boss, "ops", users.GroupChange{}))(t).ID
		own := must(p.Groups.Create(ctx, boss, "own", users.GroupChange{}))(t).ID
		must(p.SignIns.SetRules(ctx, boss, users.Rules{Rules: []account.GroupRule{
			{Claimed: "eng", Group: web, Role: account.Developer}, {Claimed: "lead", Group: web, Role: account.Owner},
			{Claimed: "eng", Group: ops, Role: account.Reporter}, {Claimed: "it", Admin: true},
		}}))(t)
		var id account.UserID
		come := func(groups ...string) account.Principal {
			t.Helper()
			id = must(p.SignIns.ByProvider(ctx, &account.Identity{Issuer: "https://id.example.com", Subject: "1", Name: "ann", Groups: groups}, false))(t)
			return as(t, p, id)
		}
		_, err := p.SignIns.ByProvider(ctx, &account.Identity{Issuer: "https://id.example.com", Subject: "2", Name: "eve", Groups: []string{"others"}}, false)
		wantError(t, err, users.ErrNoAccount)

		if ann := come("eng"); ann.Groups[web] != account.Developer || ann.Groups[ops] != account.Reporter || ann.Admin {
			t.Errorf("of eng she is %+v", ann)
		}
		mustDo(t, p.Groups.SetRole(ctx, boss, own, id, account.Maintainer))
		if ann := come("lead", "it"); ann.Groups[web] != account.Owner || ann.Groups[ops] != account.Outsider || !ann.Admin || ann.Groups[own] != account.Maintainer {
			t.Errorf("of lead and it she is %+v", ann)
		}
		mustDo(t, p.Groups.SetRole(ctx, boss, web, boss.User, account.Outsider))
		if ann := come(); ann.Groups[web] != account.Owner || ann.Admin {
			t.Errorf("the last owner is %+v", ann)
		}
		mustDo(t, p.Groups.Delete(ctx, boss, ops))
		if ann := come("eng"); ann.Groups[web] != account.Owner {
			t.Errorf("with a rule for a group that is gone she is %+v", ann)
		}
	})
}

func TestSettingsAreNotOverwritten(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		kept := must(p.Audit.SetRetention(ctx, boss, users.Retention{Days: 30}))(t)
		_, err := p.Audit.SetRetention(ctx, boss, users.Retention{Days: 7})
		wantError(t, err, store.ErrConflict)
		if got := must(p.Audit.Retention(ctx, boss))(t); got != kept || got.Days != 30 {
			t.Errorf("it is %+v", got)
		}
	})
}

func TestNewUsersGetUniqueNames(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	p := core(t, db)
	subject := 0
	rapid.Check(t, func(t *rapid.T) {
		wish := rapid.OneOf(rapid.String(), rapid.SampledFrom([]string{"ann", "Ann@example.com", "me", "..", "-", ""})).Draw(t, "wish")
		subject++
		id, err := p.SignIns.ByProvider(context.Background(), &account.Identity{Issuer: "https://id.example.com", Subject: fmt.Sprint(subject), Name: strings.ToValidUTF8(wish, "")}, true)
		if err != nil {
			t.Fatal(err)
		}
		name := as(t, p, id).Name
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyz0123456789._-") != "" || name == "" || len(name) > users.MaxName || name == "me" {
			t.Fatalf("%q is called %q", wish, name)
		}
	})
}

// Whatever users change, the hub keeps an administrator, and every group an owner.
func TestLastAdminStays(t *testing.T) {
	db := storetest.Open(t, storetest.SQLite(t))
	p := core(t, db)
	ctx := context.Background()
	n := 0
	rapid.Check(t, func(t *rapid.T) {
		n++
		ids := []account.UserID{"boss"}
		for i := range 3 {
			ids = append(ids, must(p.Users.Create(ctx, boss, users.NewUser{Name: fmt.Sprintf("u%d-%d", n, i)}))(t).ID)
		}
		g := must(p.Groups.Create(ctx, boss, fmt.Sprintf("g%d", n), users.GroupChange{}))(t).ID
		who := rapid.SampledFrom(ids)
		for range rapid.IntRange(1, 12).Draw(t, "steps") {
			yes := rapid.Bool().Draw(t, "yes")
			switch target := who.Draw(t, "target"); rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				p.Users.Change(ctx, boss, target, users.UserChange{Admin: &yes})
			case 1:
				p.Users.Change(ctx, boss, target, users.UserChange{Disabled: &yes})
			case 2:
				p.Groups.SetRole(ctx, boss, g, target, account.Role(rapid.IntRange(0, 4).Draw(t, "role")))
			case 3:
				if target != "boss" {
					p.Users.Delete(ctx, boss, target)
				}
			}
			if left := must(db.Users.CountAdmins(ctx))(t); left == 0 {
				t.Fatal("no administrator")
			}
			if left := must(db.Groups.CountWithRole(ctx, string(g), store.Owner))(t); left == 0 {
				t.Fatal("the group has no owner")
			}
		}
	})
}
