package people

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// User is somebody as a principal sees him.
type User struct {
	ID       account.UserID
	Name     string // that nobody else has, and that never changes
	Display  string
	Disabled bool
	// Whole is whether what follows is told: to the user, and to admins.
	Whole    bool
	Email    string
	Admin    bool
	Password bool // whether there is one to sign in with
	Created  time.Time
	Seen     time.Time // last, to about a minute
}

// seen is what a principal sees of a user.
func seen(p account.Principal, u store.User) User {
	out := User{ID: account.UserID(u.ID), Name: u.Name, Display: u.Display, Disabled: u.Disabled}
	if account.Can(p, account.UserRead, account.Of(out.ID)) {
		out.Whole, out.Email, out.Admin, out.Password, out.Created, out.Seen = true, u.Email, u.Admin || p.Admin && p.User == out.ID, u.Password != "", u.Created, u.Seen
	}
	return out
}

// Users are the accounts of people.
type Users struct{ b *book }

// List returns users by name, and how to ask for more: their names alone to those who
// are no admins.
func (u Users) List(ctx context.Context, p account.Principal, page store.Page) ([]User, string, error) {
	if err := account.Check(p, account.UserList, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	rows, next, err := u.b.db.Users.List(ctx, page)
	out := make([]User, len(rows))
	for i, row := range rows {
		out[i] = seen(p, row)
	}
	return out, next, err
}

// Named returns the user with a name, as [Users.List] does.
func (u Users) Named(ctx context.Context, p account.Principal, name string) (User, error) {
	if err := account.Check(p, account.UserList, account.Resource{Shared: true}); err != nil {
		return User{}, err
	}
	row, err := u.b.db.Users.ByName(ctx, name)
	if err != nil {
		return User{}, err
	}
	return seen(p, row), nil
}

// Get returns all that is known of a user, to himself and to admins.
func (u Users) Get(ctx context.Context, p account.Principal, id account.UserID) (User, error) {
	if err := account.Check(p, account.UserRead, account.Of(id)); err != nil {
		return User{}, err
	}
	row, err := u.b.db.Users.Get(ctx, string(id))
	if err != nil {
		return User{}, err
	}
	return seen(p, row), nil
}

// NewUser is what is said of a user who is made.
type NewUser struct {
	Name, Display, Email string
	Password             string // may be empty: he signs in by a provider, or an admin sets one
	Admin                bool
}

// Create makes a user. It fails with an [*InvalidError], an [*account.WeakError], or
// [store.ErrExists] where there is one of that name.
func (u Users) Create(ctx context.Context, p account.Principal, n NewUser) (User, error) {
	row := store.User{ID: store.NewID(), Name: n.Name, Display: n.Display, Email: n.Email, Admin: n.Admin}
	a := act{by: p, action: account.UserManage, in: store.UserNamespace(row.ID), subject: row.ID,
		details: map[string]any{"change": "create", "name": n.Name, "admin": n.Admin}}
	if err := u.b.may(ctx, a, account.Resource{}); err != nil {
		return User{}, err
	}
	if err := errors.Join(checkName(n.Name), checkText("display", n.Display, MaxDisplay), checkEmail(n.Email)); err != nil {
		return User{}, err
	}
	if n.Password != "" {
		hash, err := u.b.passwords.Hash(ctx, n.Name, n.Password)
		if err != nil {
			return User{}, err
		}
		row.Password = hash
	}
	err := u.b.change(ctx, &a, func(tx *store.Tx) (err error) {
		row, err = tx.Users.Create(ctx, row)
		return err
	})
	if err != nil {
		return User{}, err
	}
	return seen(p, row), nil
}

// UserChange is what is to change of a user; nil stays as it is.
type UserChange struct {
	Display, Email  *string
	Admin, Disabled *bool // which admins change alone
}

// Change changes a user. Disabling one signs him out everywhere. It fails with
// [ErrLastAdmin] where nobody would be left.
func (u Users) Change(ctx context.Context, p account.Principal, id account.UserID, c UserChange) (User, error) {
	a := act{by: p, action: account.UserWrite, in: store.UserNamespace(string(id)), subject: string(id), details: c.details()}
	if c.Admin != nil || c.Disabled != nil {
		a.action = account.UserManage
	}
	if err := u.b.may(ctx, a, account.Of(id)); err != nil {
		return User{}, err
	}
	if err := c.check(); err != nil {
		return User{}, err
	}
	var row store.User
	err := u.b.change(ctx, &a, func(tx *store.Tx) (err error) {
		row, err = c.apply(ctx, tx, id)
		return err
	})
	if err != nil {
		return User{}, err
	}
	return seen(p, row), nil
}

func (c UserChange) apply(ctx context.Context, tx *store.Tx, id account.UserID) (store.User, error) {
	row, err := tx.Users.Get(ctx, string(id))
	if err != nil {
		return row, err
	}
	had := row.Admin && !row.Disabled
	row.Display, row.Email = or(c.Display, row.Display), or(c.Email, row.Email)
	row.Admin, row.Disabled = or(c.Admin, row.Admin), or(c.Disabled, row.Disabled)
	if err := tx.Users.Update(ctx, row); err != nil {
		return row, err
	}
	if row.Disabled {
		if _, err := tx.Logins.DeleteOf(ctx, row.ID, nil); err != nil {
			return row, err
		}
	}
	return row, keepsAdmin(ctx, tx, had)
}

// keepsAdmin fails where a change of somebody has left no admin; was is whether he was
// one.
func keepsAdmin(ctx context.Context, tx *store.Tx, was bool) error {
	if !was {
		return nil
	}
	n, err := tx.Users.Admins(ctx)
	if err == nil && n == 0 {
		err = ErrLastAdmin
	}
	return err
}

func (c UserChange) check() error {
	return errors.Join(checkText("display", or(c.Display, ""), MaxDisplay), checkEmail(or(c.Email, "")))
}

// details are what the audit log has of a change: not what somebody is called or where
// he gets mail, which he may want forgotten.
func (c UserChange) details() map[string]any {
	d := map[string]any{"change": "update"}
	if c.Admin != nil {
		d["admin"] = *c.Admin
	}
	if c.Disabled != nil {
		d["disabled"] = *c.Disabled
	}
	return d
}

func or[T any](changed *T, was T) T {
	if changed != nil {
		return *changed
	}
	return was
}

// SetPassword gives a user another password and signs him out everywhere but where the
// hash of the sign-in is keep. Who changes his own has to know the one he has, else it
// fails with [account.ErrPassword]. Tokens go on.
func (u Users) SetPassword(ctx context.Context, p account.Principal, id account.UserID, current, password string, keep []byte) error {
	a := act{by: p, action: account.UserWrite, in: store.UserNamespace(string(id)), subject: string(id), details: map[string]any{"change": "password"}}
	if err := u.b.may(ctx, a, account.Of(id)); err != nil {
		return err
	}
	row, err := u.b.db.Users.Get(ctx, string(id))
	if err != nil {
		return err
	}
	if id == p.User && row.Password != "" {
		if _, err := u.b.passwords.Check(ctx, row.Password, current); err != nil {
			return err
		}
	}
	hash, err := u.b.passwords.Hash(ctx, row.Name, password)
	if err != nil {
		return err
	}
	return u.b.change(ctx, &a, func(tx *store.Tx) error {
		if err := tx.Users.SetPassword(ctx, row.ID, hash); err != nil {
			return err
		}
		_, err := tx.Logins.DeleteOf(ctx, row.ID, keep)
		return err
	})
}

// Delete removes a user with his tokens, sign-ins and memberships. It fails with
// [store.ErrReferenced] while he has skills, kinds or conversations, and with
// [ErrLastAdmin] or [ErrLastOwner] where nobody would be left.
func (u Users) Delete(ctx context.Context, p account.Principal, id account.UserID) error {
	a := act{by: p, action: account.UserManage, in: store.UserNamespace(string(id)), subject: string(id), details: map[string]any{"change": "delete"}}
	if err := u.b.may(ctx, a, account.Of(id)); err != nil {
		return err
	}
	return u.b.change(ctx, &a, func(tx *store.Tx) error {
		row, err := tx.Users.Get(ctx, string(id))
		if err != nil {
			return err
		}
		memberships, err := tx.Groups.Of(ctx, row.ID)
		if err != nil {
			return err
		}
		if err := tx.Users.Delete(ctx, row.ID); err != nil {
			return err
		}
		for _, m := range memberships {
			if err := keepsOwner(ctx, tx, m.GroupID, m.Role); err != nil {
				return err
			}
		}
		return keepsAdmin(ctx, tx, row.Admin && !row.Disabled)
	})
}
