package users_test

import (
	"errors"
	"testing"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/store/storetest"
)

func login(hash string) account.Login {
	return account.Login{Hash: []byte(hash), Created: time.Now(), Expires: time.Now().Add(time.Hour)}
}

// A sign-in whose password was right when its check began does not start after the
// password was changed, and does not store a new hash of the old password.
func TestSignInAfterPasswordChange(t *testing.T) {
	storetest.Each(t, func(t *testing.T, db *store.DB) {
		ctx, p := t.Context(), core(t, db)
		bob := must(p.Users.Create(ctx, boss, users.NewUser{Name: "bob", Password: password}))(t)
		was := must(db.Users.Get(ctx, string(bob.ID)))(t)
		mustDo(t, p.Users.SetPassword(ctx, boss, bob.ID, users.PasswordChange{Password: "quite another one"}))
		now := must(db.Users.Get(ctx, string(bob.ID)))(t)
		for _, hash := range []string{"", "a new hash of the old password"} {
			_, err := p.SignIns.StartLogin(ctx, was, hash, login("1"))
			wantError(t, err, users.ErrPasswordChanged)
		}
		if logins := must(db.Logins.ListByUser(ctx, was.ID))(t); len(logins) != 0 {
			t.Errorf("signed in: %v", logins)
		}
		if got := must(db.Users.Get(ctx, was.ID))(t); got.Password != now.Password {
			t.Error("the old password is back")
		}
		if _, err := p.SignIns.ByPassword(ctx, account.UserClient("x"), "bob", password, login("2")); !errors.Is(err, account.ErrWrongPassword) {
			t.Errorf("the old password: %v", err)
		}
		user := must(p.SignIns.ByPassword(ctx, account.UserClient("x"), "bob", "quite another one", login("3")))(t)
		if logins := must(db.Logins.ListByUser(ctx, was.ID))(t); user != bob.ID || len(logins) != 1 || string(logins[0].Hash) != "3" {
			t.Errorf("user %s, sign-ins %v", user, logins)
		}
	})
}
