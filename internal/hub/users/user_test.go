package users_test

import (
	"context"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

// Names of administrators would help to attack their accounts.
func TestAdminsAreListedOnlyToTheirGroups(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		web := must(p.Groups.Create(ctx, boss, "web", users.GroupChange{}))(t).ID
		own := must(p.Groups.Create(ctx, boss, "own", users.GroupChange{}))(t).ID
		mustDo(t, p.Users.Delete(ctx, boss, must(p.Users.Create(ctx, boss, users.NewUser{Name: "gone"}))(t).ID))
		member := newMember(t, p, "member", web, account.Reporter)
		outsider := newMember(t, p, "outsider", web, account.Outsider)
		admin := newMember(t, p, "root", own, account.Outsider)
		yes := true
		must(p.Users.Change(ctx, boss, admin.User, users.UserChange{Admin: &yes}))(t)
		for _, tt := range []struct {
			by   account.Principal
			want string
		}{
			{boss, "boss member outsider root"}, {as(t, p, admin.User), "boss member outsider root"},
			{member, "boss member outsider"}, {outsider, "member outsider"},
		} {
			list, _, err := p.Users.List(ctx, tt.by, store.Page{})
			var names []string
			for _, u := range list {
				names = append(names, u.Name)
				if u.Full != (tt.by.Admin || u.ID == tt.by.User) {
					t.Errorf("%s sees %+v", tt.by.Name, u)
				}
			}
			if got := strings.Join(names, " "); err != nil || got != tt.want {
				t.Errorf("%s lists %q %v, want %q", tt.by.Name, got, err, tt.want)
			}
		}
		_, err := p.Users.ByName(ctx, outsider, "root")
		wantError(t, err, store.ErrNotFound)
		mustDo(t, p.Groups.SetRole(ctx, boss, own, outsider.User, account.Owner))
		if u := must(p.Users.ByName(ctx, as(t, p, outsider.User), "root"))(t); u.ID != admin.User || u.Full {
			t.Errorf("an owner of a group finds %+v", u)
		}
		_, err = p.Users.Get(ctx, outsider, member.User)
		wantDenied(t, err)
		_, err = p.Users.Get(ctx, boss, "missing")
		wantError(t, err, store.ErrNotFound)
	})
}

func TestUserValues(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Display: "Ann", Email: "ann@example.com"}))(t)
		long := strings.Repeat("x", users.MaxEmail-len("@example.com")) + "@example.com"
		for _, tt := range []struct{ display, email, field string }{
			{strings.Repeat("x", users.MaxDisplay), "", ""}, {strings.Repeat("x", users.MaxDisplay+1), "", "display"},
			{"two\nlines", "", ""}, {"a\x1b[1m", "", "display"}, {"\xff", "", "display"},
			{"", long, ""}, {"", "x" + long, "email"}, {"", "ann", "email"}, {"", "@example.com", "email"}, {"", "ann@", "email"}, {"", "a nn@example.com", "email"},
		} {
			_, err := p.Users.Change(ctx, boss, ann.ID, users.UserChange{Display: &tt.display, Email: &tt.email})
			if tt.field != "" {
				wantInvalid(t, err, tt.field)
			} else if err != nil {
				t.Errorf("%+v: %v", tt, err)
			}
		}
		email := "new@example.com"
		must(p.Users.Change(ctx, as(t, p, ann.ID), ann.ID, users.UserChange{Email: &email}))(t)
		if got := must(p.Users.Get(ctx, boss, ann.ID))(t); got.Email != email || got.Display != "" || got.Admin || got.Disabled || got.Password || got.Created.IsZero() {
			t.Errorf("the user is %+v", got)
		}
		yes := true
		_, err := p.Users.Change(ctx, as(t, p, ann.ID), ann.ID, users.UserChange{Admin: &yes})
		wantDenied(t, err)
		_, err = p.Users.Change(ctx, boss, "missing", users.UserChange{})
		wantError(t, err, store.ErrNotFound)
	})
}

func TestDisabledUsersAreSignedOut(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Password: password}))(t)
		signIn := func(hash string) error {
			_, err := p.SignIns.ByPassword(ctx, account.UserClient("x"), "Ann", password, login(hash))
			return err
		}
		mustDo(t, signIn("1"))
		yes, no := true, false
		display := "Ann"
		must(p.Users.Change(ctx, boss, ann.ID, users.UserChange{Display: &display}))(t)
		if valid := must(p.SignIns.Valid(ctx, "1", "2"))(t); !valid["1"] || valid["2"] {
			t.Errorf("valid sign-ins are %v", valid)
		}
		must(p.Users.Change(ctx, boss, ann.ID, users.UserChange{Disabled: &yes}))(t)
		if valid := must(p.SignIns.Valid(ctx, "1"))(t); valid["1"] {
			t.Error("a disabled user is still signed in")
		}
		wantError(t, signIn("2"), users.ErrDisabled)
		_, err := p.SignIns.Principal(ctx, ann.ID)
		wantError(t, err, account.ErrInvalidCredentials)
		must(p.Users.Change(ctx, boss, ann.ID, users.UserChange{Disabled: &no}))(t)
		mustDo(t, signIn("3"))
		var log []string
		for _, r := range must(p.Audit.List(ctx, boss, store.AuditQuery{Namespace: store.UserNamespace(string(ann.ID)), Action: "sign-in"}))(t) {
			log = append(log, r.Decision)
		}
		if got := strings.Join(log, " "); got != "allowed denied allowed" {
			t.Errorf("the log has %q", got)
		}
	})
}

// A disabled user's tokens are not valid, so that running requests with them end.
func TestTokensOfDisabledUser(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		id := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Password: password}))(t).ID
		_, token, err := p.Tokens.Create(ctx, as(t, p, id), "ci", account.ScopeRead, 0)
		mustDo(t, err)
		for _, disabled := range []bool{true, false} {
			must(p.Users.Change(ctx, boss, id, users.UserChange{Disabled: &disabled}))(t)
			if scopes := must(p.Tokens.ValidScopes(ctx, token.ID))(t); (len(scopes) == 0) != disabled {
				t.Errorf("disabled: %t; valid tokens are %v", disabled, scopes)
			}
		}
	})
}

func TestOwnPasswordNeedsCurrentOne(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		id := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Password: password}))(t).ID
		ann := as(t, p, id)
		_, token, err := p.Tokens.Create(ctx, ann, "ci", account.ScopeRead, 0)
		mustDo(t, err)
		const other = "quite another one"
		wantError(t, p.Users.SetPassword(ctx, ann, id, users.PasswordChange{Current: other, Password: other}), account.ErrWrongPassword)
		wantDenied(t, p.Users.SetPassword(ctx, newMember(t, p, "bob", "", account.Outsider), id, users.PasswordChange{Current: password, Password: other}))
		if p.Users.SetPassword(ctx, ann, id, users.PasswordChange{Current: password, Password: "short"}) == nil {
			t.Error("a weak password is accepted")
		}
		must(p.SignIns.ByPassword(ctx, account.UserClient("x"), "ann", password, login("old")))(t)
		renewed := login("new")
		renewed.User = id
		mustDo(t, p.Users.SetPassword(ctx, ann, id, users.PasswordChange{Current: password, Password: other, Login: &renewed}))
		if logins := must(p.SignIns.List(ctx, ann, id))(t); len(logins) != 1 || string(logins[0].Hash) != "new" {
			t.Errorf("sign-ins are %v", logins)
		}
		if scopes := must(p.Tokens.ValidScopes(ctx, token.ID))(t); scopes[token.ID] != account.ScopeRead {
			t.Errorf("tokens are %v", scopes)
		}
		mustDo(t, p.Users.SetPassword(ctx, boss, id, users.PasswordChange{Password: password, RevokeTokens: true}))
		if logins := must(p.SignIns.List(ctx, boss, id))(t); len(logins) != 0 {
			t.Errorf("sign-ins are %v", logins)
		}
		if scopes := must(p.Tokens.ValidScopes(ctx, token.ID))(t); len(scopes) != 0 {
			t.Errorf("tokens are %v", scopes)
		}
	})
}

func TestSignOutKeepsOneSignIn(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		id := must(p.Users.Create(ctx, boss, users.NewUser{Name: "ann", Password: password}))(t).ID
		ann := as(t, p, id)
		for _, hash := range []string{"1", "2", "3"} {
			must(p.SignIns.ByPassword(ctx, account.UserClient("x"), "ann", password, login(hash)))(t)
		}
		mustDo(t, p.SignIns.SignOut(ctx, ann, id, []byte("2")))
		if logins := must(p.SignIns.List(ctx, ann, id))(t); len(logins) != 1 || string(logins[0].Hash) != "2" {
			t.Errorf("sign-ins are %v", logins)
		}
		bob := newMember(t, p, "bob", "", account.Outsider)
		wantDenied(t, p.SignIns.SignOut(ctx, bob, id, nil))
		_, err := p.SignIns.List(ctx, bob, id)
		wantDenied(t, err)
		wantError(t, p.SignIns.SignOut(ctx, boss, "missing", nil), store.ErrNotFound)
		_, err = p.SignIns.List(ctx, boss, "missing")
		wantError(t, err, store.ErrNotFound)
	})
}

func TestTokens(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := newMember(t, p, "ann", "", account.Outsider)
		for _, tt := range []struct {
			name   string
			scopes account.Scopes
			life   time.Duration
			field  string
		}{
			{"", account.ScopeRead, 0, "name"}, {strings.Repeat("x", 101), account.ScopeRead, 0, "name"},
			{"ci", 0, 0, "scopes"}, {"ci", account.ScopeRead, -time.Second, "expires"},
		} {
			_, _, err := p.Tokens.Create(ctx, ann, tt.name, tt.scopes, tt.life)
			wantInvalid(t, err, tt.field)
		}
		text, forever, err := p.Tokens.Create(ctx, ann, strings.Repeat("x", 100), account.ScopeRead|account.ScopeRun, 0)
		if err != nil || text == "" || !forever.Expires.IsZero() {
			t.Fatalf("the token is %+v %v", forever, err)
		}
		_, short, err := p.Tokens.Create(ctx, ann, "short", account.ScopeRead, time.Hour)
		mustDo(t, err)
		_, expired, err := p.Tokens.Create(ctx, ann, "expired", account.ScopeRead, time.Nanosecond)
		mustDo(t, err)
		valid := must(p.Tokens.ValidScopes(ctx, forever.ID, short.ID, expired.ID, "missing"))(t)
		if len(valid) != 2 || valid[forever.ID] != account.ScopeRead|account.ScopeRun || valid[short.ID] != account.ScopeRead {
			t.Errorf("valid tokens are %v", valid)
		}
		bob := newMember(t, p, "bob", "", account.Outsider)
		wantDenied(t, p.Tokens.Revoke(ctx, bob, ann.User, short.ID))
		wantError(t, p.Tokens.Revoke(ctx, bob, bob.User, short.ID), store.ErrNotFound)
		mustDo(t, p.Tokens.Revoke(ctx, ann, ann.User, short.ID))
		if list := must(p.Tokens.List(ctx, ann, ann.User))(t); len(list) != 2 || list[0].ID != forever.ID || list[1].ID != expired.ID {
			t.Errorf("tokens are %v", list)
		}
		_, err = p.Tokens.List(ctx, bob, ann.User)
		wantDenied(t, err)
	})
}

func TestFirstAdmin(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		token := must(p.SignIns.NewSetupToken())(t)
		_, err := p.SignIns.CreateFirstAdmin(ctx, token, "ann", password)
		wantError(t, err, users.ErrHasAdmin)
		_, err = p.SignIns.LocalPrincipal(ctx)
		wantError(t, err, users.ErrHasAdmin)
		mustDo(t, db.Users.Delete(ctx, "boss"))
		if !must(p.SignIns.HasNoAdmin(ctx))(t) {
			t.Error("an empty hub has an administrator")
		}
		for range 2 {
			mustDo(t, p.SignIns.EnsureLocalUser(ctx))
		}
		if local := must(p.SignIns.LocalPrincipal(ctx))(t); local.User != account.SinglePrincipal().User {
			t.Errorf("the local user is %+v", local)
		}
		_, err = p.SignIns.CreateFirstAdmin(ctx, token+"x", "ann", password)
		wantError(t, err, users.ErrSetup)
		_, err = p.SignIns.CreateFirstAdmin(ctx, token, "Ann", password)
		wantInvalid(t, err, "name")
		id := must(p.SignIns.CreateFirstAdmin(ctx, token, "ann", password))(t)
		if ann := as(t, p, id); !ann.Admin || ann.Name != "ann" {
			t.Errorf("the first administrator is %+v", ann)
		}
		must(p.SignIns.ByPassword(ctx, account.UserClient("x"), "ann", password, login("1")))(t)
		_, err = p.SignIns.CreateFirstAdmin(ctx, token, "eve", password)
		wantError(t, err, users.ErrHasAdmin)
	})
}

func TestNetworksAreRememberedByUser(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		ann := newMember(t, p, "ann", "", account.Outsider).User
		newMember(t, p, "bob", "", account.Outsider)
		network := func(i byte) netip.Prefix { return netip.PrefixFrom(netip.AddrFrom4([4]byte{192, 0, i, 0}), 24) }
		knows := func(name string, i byte) bool {
			t.Helper()
			return must(p.SignIns.KnowsNetwork(context.Background(), name, network(i)))(t)
		}
		for i := range byte(34) { // two more than are remembered
			mustDo(t, p.SignIns.RememberNetwork(ctx, ann, network(i)))
		}
		for i, want := range map[byte]bool{0: false, 1: false, 2: true, 33: true, 34: false} {
			if got := knows("Ann", i); got != want {
				t.Errorf("network %d is known: %t", i, got)
			}
		}
		if knows("bob", 33) || knows("nobody", 33) {
			t.Error("a network of another user is known")
		}
		mustDo(t, p.SignIns.RememberNetwork(ctx, ann, network(33)))
		if !knows("ann", 2) {
			t.Error("a known network took the place of another one")
		}
	})
}
