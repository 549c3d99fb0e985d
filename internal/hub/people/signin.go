package people

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// signIn is an act of the audit log that is no action of a principal.
const signIn account.Action = "sign-in"

// SignIns find out who somebody is.
type SignIns struct{ b *book }

// Principal is who a user is now, with all scopes. It fails with [account.ErrRefused]
// for one who is gone or disabled, and notes that the user was there.
func (s SignIns) Principal(ctx context.Context, id account.UserID) (account.Principal, error) {
	row, err := s.b.db.Users.Get(ctx, string(id))
	switch {
	case errors.Is(err, store.ErrNotFound), err == nil && row.Disabled:
		return account.Principal{}, account.ErrRefused
	case err != nil:
		return account.Principal{}, err
	}
	groups, err := s.groups(ctx, id)
	if err != nil {
		return account.Principal{}, err
	}
	if now := time.Now(); now.Sub(row.Seen) >= time.Minute {
		if err := s.b.db.Users.Touch(ctx, row.ID, now); err != nil {
			return account.Principal{}, err
		}
	}
	return account.Principal{User: id, Name: row.Name, Admin: row.Admin, Groups: groups, Scopes: account.AllScopes}, nil
}

// Single is who a hub of one person has. It fails with [ErrHasAdmin] once there are
// accounts, which another process may have made.
func (s SignIns) Single(ctx context.Context) (account.Principal, error) {
	p := account.Single()
	switch vacant, err := s.Vacant(ctx); {
	case err != nil:
		return account.Principal{}, err
	case !vacant:
		return account.Principal{}, ErrHasAdmin
	}
	var err error
	p.Groups, err = s.groups(ctx, p.User)
	return p, err
}

func (s SignIns) groups(ctx context.Context, id account.UserID) (map[account.GroupID]account.Role, error) {
	memberships, err := s.b.db.Groups.Of(ctx, string(id))
	groups := make(map[account.GroupID]account.Role, len(memberships))
	for _, m := range memberships {
		groups[account.GroupID(m.GroupID)] = roleOf(m.Role)
	}
	return groups, err
}

// ByPassword returns the user that a name and a password are of. It fails with
// [account.ErrPassword], whichever of them is wrong, and with [ErrDisabled] for who
// knows both. What was tried is recorded where there is such a user.
func (s SignIns) ByPassword(ctx context.Context, name, password string) (account.UserID, error) {
	row, err := s.b.db.Users.ByName(ctx, strings.ToLower(name))
	if err != nil && !errors.Is(err, store.ErrNotFound) && !errors.Is(err, store.ErrInvalid) {
		return "", err
	}
	again, err := s.b.passwords.Check(ctx, row.Password, password) // of nobody too: it takes as long
	a := act{action: signIn, in: store.UserNamespace(row.ID), subject: row.ID, details: map[string]any{"by": "password"}}
	switch {
	case err == nil && row.Disabled:
		return "", errors.Join(ErrDisabled, record(ctx, s.b.db.Audit, a, "denied"))
	case errors.Is(err, account.ErrPassword) && row.ID != "":
		return "", errors.Join(err, record(ctx, s.b.db.Audit, a, "denied"))
	case err != nil:
		return "", err
	}
	var hash string
	if again { // the password may be too weak by now, and is the user's all the same
		hash, _ = s.b.passwords.Hash(ctx, row.Name, password)
	}
	a.by.User = account.UserID(row.ID)
	return a.by.User, s.b.change(ctx, &a, func(tx *store.Tx) error {
		if hash == "" {
			return nil
		}
		return tx.Users.SetPassword(ctx, row.ID, hash)
	})
}

// ByProvider returns the user that a provider knows, after giving him the groups that
// [Rules] say. Who is new gets an account where a rule gives him a
// group, or everyone is asked in; else it fails with [ErrNoAccount].
func (s SignIns) ByProvider(ctx context.Context, id *account.Identity, everyone bool) (account.UserID, error) {
	a := act{action: signIn, details: map[string]any{"by": id.Issuer}}
	err := s.b.change(ctx, &a, func(tx *store.Tx) error {
		rules, err := rulesInForce(ctx, tx)
		if err != nil {
			return err
		}
		groups, admin := account.Memberships(rules, id.Groups)
		row, err := tx.Users.ByIdentity(ctx, id.Issuer, id.Subject)
		if errors.Is(err, store.ErrNotFound) {
			if len(groups) == 0 && !admin && !everyone {
				return ErrNoAccount
			}
			row, err = newcomer(ctx, tx, id)
		}
		switch {
		case err != nil:
			return err
		case row.Disabled:
			return ErrDisabled
		}
		a.by.User, a.in, a.subject = account.UserID(row.ID), store.UserNamespace(row.ID), row.ID
		return follow(ctx, tx, row, rules, groups, admin)
	})
	return a.by.User, err
}

// newcomer makes a user of somebody whom a provider knows, under the name that he
// wishes or one like it.
func newcomer(ctx context.Context, tx *store.Tx, id *account.Identity) (store.User, error) {
	wish := asName(id.Name)
	name := wish
	for n := 2; ; n++ {
		_, err := tx.Users.ByName(ctx, name)
		if errors.Is(err, store.ErrNotFound) {
			break
		}
		if err != nil {
			return store.User{}, err
		}
		if n > 100 { // not as many rounds as there are users of a name
			id := store.NewID()
			name = wish + "-" + id[len(id)-8:]
			break
		}
		name = fmt.Sprintf("%s-%d", wish, n)
	}
	email := id.Email
	if checkEmail(email) != nil {
		email = ""
	}
	row, err := tx.Users.Create(ctx, store.User{Name: name, Email: email})
	if err != nil {
		return store.User{}, err
	}
	return row, tx.Users.Link(ctx, row.ID, id.Issuer, id.Subject)
}

// asName makes of a wish what a user can be called.
func asName(wish string) string {
	wish, _, _ = strings.Cut(strings.ToLower(wish), "@")
	name := strings.Map(func(r rune) rune {
		if 'a' <= r && r <= 'z' || '0' <= r && r <= '9' || strings.ContainsRune("._-", r) {
			return r
		}
		return '-'
	}, wish)
	name = strings.Trim(name[:min(len(name), MaxName-20)], "._-")
	if checkName(name) != nil {
		return strings.Trim("user-"+name, "-")
	}
	return name
}

// follow gives somebody the groups that rules say, and takes him out of those of which
// they say that he is in no more. A group that no rule names is not touched, nor is who
// is an admin while no rule makes admins, and no group loses its last owner.
func follow(ctx context.Context, tx *store.Tx, row store.User, rules []account.GroupRule, groups map[account.GroupID]account.Role, admin bool) error {
	for g := range governed(rules) {
		from, err := roleIn(ctx, tx, g, account.UserID(row.ID))
		if err != nil {
			return err
		}
		to := groups[g]
		if from == to {
			continue
		}
		if from == account.Owner {
			if n, err := tx.Groups.WithRole(ctx, string(g), store.Owner); err != nil || n == 1 {
				if err != nil {
					return err
				}
				continue
			}
		}
		if err := setRole(ctx, tx, g, account.UserID(row.ID), from, to); err != nil {
			return fmt.Errorf("follow the rules of sign-ins: %w", err)
		}
	}
	makes := false
	for _, r := range rules {
		makes = makes || r.Admin
	}
	if !makes || row.Admin == admin {
		return nil
	}
	if n, err := tx.Users.Admins(ctx); err != nil || n == 1 && !admin {
		return err
	}
	row.Admin = admin
	return tx.Users.Update(ctx, row)
}

// governed are the groups that rules name.
func governed(rules []account.GroupRule) map[account.GroupID]bool {
	out := map[account.GroupID]bool{}
	for _, r := range rules {
		if r.Group != "" {
			out[r.Group] = true
		}
	}
	return out
}

// Of returns where a user is signed in, the oldest first.
func (s SignIns) Of(ctx context.Context, p account.Principal, user account.UserID) ([]account.Login, error) {
	if err := account.Check(p, account.TokenList, account.Of(user)); err != nil {
		return nil, err
	}
	rows, err := s.b.db.Logins.Of(ctx, string(user))
	out := make([]account.Login, len(rows))
	for i, row := range rows {
		out[i] = loginOf(row)
	}
	return out, err
}

// End signs a user out everywhere but where the hash of the sign-in is keep.
func (s SignIns) End(ctx context.Context, p account.Principal, user account.UserID, keep []byte) error {
	a := act{by: p, action: account.TokenEnd, in: store.UserNamespace(string(user)), subject: string(user), details: map[string]any{"change": "sign out"}}
	if err := s.b.may(ctx, a, account.Of(user)); err != nil {
		return err
	}
	return s.b.change(ctx, &a, func(tx *store.Tx) error {
		_, err := tx.Logins.DeleteOf(ctx, string(user), keep)
		return err
	})
}
