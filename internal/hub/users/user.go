package users

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// User describes an account, with the details that the caller may see.
type User struct {
	ID       account.UserID
	Name     string // unique, never changes
	Display  string
	Disabled bool
	// Full reports whether the fields below are set. Only the user and
	// administrators may see them.
	Full     bool
	Email    string
	Admin    bool
	Password bool // whether the user has a password
	Created  time.Time
	LastSeen time.Time // accurate to about a minute
}

// userFor returns a user with the details that a principal may see.
func userFor(p account.Principal, u store.User) User {
	out := User{ID: account.UserID(u.ID), Name: u.Name, Display: untrusted.New(u.Display).ForPage(), Disabled: u.Disabled}
	if account.Can(p, account.UserRead, account.OwnedBy(out.ID)) {
		out.Full, out.Email, out.Admin, out.Password, out.Created, out.LastSeen = true, u.Email, u.Admin || p.Admin && p.User == out.ID, u.Password != "", u.Created, u.LastSeen
	}
	return out
}

// Users manages accounts.
type Users struct{ b *core }

// List returns the users sorted by name, and the cursor of the next page.
// Administrators see all details. Other users see only names, and no
// administrators except those in one of their groups. Pages for them may
// therefore be shorter.
func (u Users) List(ctx context.Context, p account.Principal, page store.Page) ([]User, string, error) {
	if err := account.Check(p, account.UserList, account.Resource{Shared: true}); err != nil {
		return nil, "", err
	}
	rows, next, err := u.b.db.Users.List(ctx, page)
	if err != nil {
		return nil, "", err
	}
	out := make([]User, 0, len(rows))
	for _, row := range rows {
		visible, err := u.isListed(ctx, p, row)
		if err != nil {
			return nil, "", err
		}
		if visible {
			out = append(out, userFor(p, row))
		}
	}
	return out, next, nil
}

// isListed reports whether a principal may find a user by listing. Most
// administrators are not listed, because their names would help to attack their
// accounts.
func (u Users) isListed(ctx context.Context, p account.Principal, row store.User) (bool, error) {
	if !row.Admin || p.Admin || p.User == account.UserID(row.ID) {
		return true, nil
	}
	memberships, err := u.b.db.Groups.ListMemberships(ctx, row.ID)
	return slices.ContainsFunc(memberships, func(m store.Member) bool {
		return p.Groups[account.GroupID(m.GroupID)] != account.Outsider
	}), err
}

// ByName returns the user with the given name, with the same details as
// [Users.List]. Principals who manage the members of a group can also find
// administrators, so that they can add them to the group.
func (u Users) ByName(ctx context.Context, p account.Principal, name string) (User, error) {
	if err := account.Check(p, account.UserList, account.Resource{Shared: true}); err != nil {
		return User{}, err
	}
	row, err := u.b.db.Users.ByName(ctx, name)
	if err != nil {
		return User{}, err
	}
	visible, err := u.isListed(ctx, p, row)
	if err == nil && !visible && !managesMembers(p) {
		err = fmt.Errorf("user %q: %w", name, store.ErrNotFound)
	}
	if err != nil {
		return User{}, err
	}
	return userFor(p, row), nil
}

// managesMembers reports whether a principal may add members to a group.
func managesMembers(p account.Principal) bool {
	for g := range p.Groups {
		if account.Can(p, account.GroupMembers, account.Resource{Group: g}) {
			return true
		}
	}
	return false
}

// Get returns a user with all details. The principal must be the user or an
// administrator.
func (u Users) Get(ctx context.Context, p account.Principal, id account.UserID) (User, error) {
	if err := account.Check(p, account.UserRead, account.OwnedBy(id)); err != nil {
		return User{}, err
	}
	row, err := u.b.db.Users.Get(ctx, string(id))
	if err != nil {
		return User{}, err
	}
	return userFor(p, row), nil
}

// NewUser holds the fields of a user to create.
type NewUser struct {
	Name, Display, Email string
	Password             string // may be empty if the user signs in through a provider or gets a password later
	Admin                bool
}

// Create creates a user. It fails with an [*InvalidError], an
// [*account.WeakPasswordError], or with [store.ErrExists] if the name is taken.
func (u Users) Create(ctx context.Context, p account.Principal, n NewUser) (User, error) {
	row := store.User{ID: store.NewID(), Name: n.Name, Display: n.Display, Email: n.Email, Admin: n.Admin}
	a := auditedAction{by: p, action: account.UserManage, in: store.UserNamespace(row.ID), subject: row.ID,
		details: map[string]any{"change": "create", "name": n.Name, "admin": n.Admin}}
	if err := u.b.authorize(ctx, a, account.Resource{}); err != nil {
		return User{}, err
	}
	if err := errors.Join(checkName(n.Name), checkText("display", n.Display, MaxDisplay), checkEmail(n.Email)); err != nil {
		return User{}, err
	}
	if n.Password != "" {
		hash, err := u.b.passwords.Hash(ctx, account.UserClient(account.UserID(n.Name)), n.Name, n.Password)
		if err != nil {
			return User{}, err
		}
		row.Password = hash
	}
	err := u.b.commit(ctx, &a, func(tx *store.Tx) (err error) {
		row, err = tx.Users.Create(ctx, row)
		return err
	})
	if err != nil {
		return User{}, err
	}
	return userFor(p, row), nil
}

// UserChange specifies which fields of a user to change. Nil fields remain
// unchanged.
type UserChange struct {
	Display, Email  *string
	Admin, Disabled *bool // only administrators may change these
}

// Change updates a user. If it disables the user, it ends all of the user's
// browser sign-ins. It fails with [ErrLastAdmin] if no administrator would
// remain.
func (u Users) Change(ctx context.Context, p account.Principal, id account.UserID, c UserChange) (User, error) {
	a := auditedAction{by: p, action: account.UserWrite, in: store.UserNamespace(string(id)), subject: string(id), details: c.details()}
	if c.Admin != nil || c.Disabled != nil {
		a.action = account.UserManage
	}
	if err := u.b.authorize(ctx, a, account.OwnedBy(id)); err != nil {
		return User{}, err
	}
	if err := c.check(); err != nil {
		return User{}, err
	}
	var row store.User
	err := u.b.commit(ctx, &a, func(tx *store.Tx) (err error) {
		row, err = c.apply(ctx, tx, id)
		return err
	})
	if err != nil {
		return User{}, err
	}
	return userFor(p, row), nil
}

func (c UserChange) apply(ctx context.Context, tx *store.Tx, id account.UserID) (store.User, error) {
	row, err := tx.Users.Get(ctx, string(id))
	if err != nil {
		return row, err
	}
	had := row.Admin && !row.Disabled
	row.Display, row.Email = valueOr(c.Display, row.Display), valueOr(c.Email, row.Email)
	row.Admin, row.Disabled = valueOr(c.Admin, row.Admin), valueOr(c.Disabled, row.Disabled)
	if err := tx.Users.Update(ctx, row); err != nil {
		return row, err
	}
	if row.Disabled {
		if _, err := tx.Logins.DeleteByUser(ctx, row.ID, nil); err != nil {
			return row, err
		}
	}
	return row, checkAdminRemains(ctx, tx, had)
}

// checkAdminRemains fails with [ErrLastAdmin] if no administrator remains after a
// change. wasAdmin reports whether the changed user was an administrator.
func checkAdminRemains(ctx context.Context, tx *store.Tx, wasAdmin bool) error {
	if !wasAdmin {
		return nil
	}
	n, err := tx.Users.CountAdmins(ctx)
	if err == nil && n == 0 {
		err = ErrLastAdmin
	}
	return err
}

func (c UserChange) check() error {
	return errors.Join(checkText("display", valueOr(c.Display, ""), MaxDisplay), checkEmail(valueOr(c.Email, "")))
}

// details returns the audit record details for a change. It omits names and email
// addresses, so that erasing them does not require a change to the audit log.
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

func valueOr[T any](changed *T, was T) T {
	if changed != nil {
		return *changed
	}
	return was
}

// PasswordChange is a new password for a user.
type PasswordChange struct {
	Current  string // required of principals who change their own password
	Password string
	// Login is a new sign-in for the browser of the request, if not nil.
	Login *account.Login
	// RevokeTokens revokes all API tokens of the user. Otherwise they remain valid.
	RevokeTokens bool
}

// SetPassword changes a user's password, ends all of the user's browser sign-ins,
// and stores c.Login. Principals who change their own password must pass the
// current one. If it is wrong, or if the password was changed in the meantime,
// SetPassword fails with [account.ErrWrongPassword].
func (u Users) SetPassword(ctx context.Context, p account.Principal, id account.UserID, c PasswordChange) error {
	details := map[string]any{"change": "password"}
	if c.RevokeTokens {
		details["tokens"] = "revoked"
	}
	a := auditedAction{by: p, action: account.UserWrite, in: store.UserNamespace(string(id)), subject: string(id), details: details}
	if err := u.b.authorize(ctx, a, account.OwnedBy(id)); err != nil {
		return err
	}
	row, err := u.b.db.Users.Get(ctx, string(id))
	if err != nil {
		return err
	}
	if id == p.User && row.Password != "" {
		if _, err := u.b.passwords.Check(ctx, account.UserClient(id), row.Password, c.Current); err != nil {
			return err
		}
	}
	hash, err := u.b.passwords.Hash(ctx, account.UserClient(account.UserID(row.Name)), row.Name, c.Password)
	if err != nil {
		return err
	}
	err = u.b.commit(ctx, &a, func(tx *store.Tx) error {
		if id == p.User {
			if err := checkPasswordIs(ctx, tx, row); err != nil {
				return err
			}
		}
		if err := tx.Users.SetPassword(ctx, row.ID, hash); err != nil {
			return err
		}
		if _, err := tx.Logins.DeleteByUser(ctx, row.ID, nil); err != nil {
			return err
		}
		if c.Login != nil {
			if err := addLogin(ctx, tx.Logins, *c.Login); err != nil {
				return err
			}
		}
		if !c.RevokeTokens {
			return nil
		}
		_, err := tx.Tokens.DeleteByUser(ctx, row.ID)
		return err
	})
	if errors.Is(err, errPasswordChanged) { // c.Current is no longer the current one
		return account.ErrWrongPassword
	}
	return err
}

// Delete deletes a user with all tokens, sign-ins and memberships. It fails with
// [store.ErrReferenced] while the user has resources or conversations, and with
// [ErrLastAdmin] or [ErrLastOwner] if the hub would lose its last administrator
// or a group its last owner.
func (u Users) Delete(ctx context.Context, p account.Principal, id account.UserID) error {
	a := auditedAction{by: p, action: account.UserManage, in: store.UserNamespace(string(id)), subject: string(id), details: map[string]any{"change": "delete"}}
	if err := u.b.authorize(ctx, a, account.OwnedBy(id)); err != nil {
		return err
	}
	return u.b.commit(ctx, &a, func(tx *store.Tx) error {
		row, err := tx.Users.Get(ctx, string(id))
		if err != nil {
			return err
		}
		memberships, err := tx.Groups.ListMemberships(ctx, row.ID)
		if err != nil {
			return err
		}
		if err := tx.Users.Delete(ctx, row.ID); err != nil {
			return err
		}
		for _, m := range memberships {
			if err := checkOwnerRemains(ctx, tx, m.GroupID, m.Role); err != nil {
				return err
			}
		}
		return checkAdminRemains(ctx, tx, row.Admin && !row.Disabled)
	})
}
