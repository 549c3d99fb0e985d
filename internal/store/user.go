package store

import (
	"context"
	"fmt"
	"time"
)

// User is an account on the hub.
type User struct {
	ID       string // set by Create if ""
	Name     string // unique
	Display  string
	Email    string
	Password string // hash with its parameters; "" if the user has no password
	Admin    bool
	Disabled bool
	Created  time.Time // set by Create if zero
	LastSeen time.Time // last activity
}

const userColumns = "id, name, display, email, password, admin, disabled, created, seen"

func (u *User) fields() []any {
	return []any{&u.ID, &u.Name, &u.Display, &u.Email, &u.Password, &u.Admin, &u.Disabled, (*timestamp)(&u.Created), (*timestamp)(&u.LastSeen)}
}

// Users stores accounts and their links to identity providers.
type Users struct{ c conn }

// Create adds a user and returns it as stored. It fails with [ErrExists] if the
// name or the id is taken.
func (t Users) Create(ctx context.Context, u User) (User, error) {
	setDefaultID(&u.ID)
	setDefaultTime(&u.Created)
	u.LastSeen = fromMillis(toMillis(u.LastSeen))
	if err := t.c.insert(ctx, "users", userColumns, u.fields()); err != nil {
		return User{}, fmt.Errorf("add user %q: %w", u.Name, err)
	}
	return u, nil
}

// Get returns the user with the given id.
func (t Users) Get(ctx context.Context, id string) (User, error) {
	u, err := queryOne[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE id = $1", id)
	if err != nil {
		return User{}, fmt.Errorf("get user %q: %w", id, err)
	}
	return u, nil
}

// ByName returns the user with the given name.
func (t Users) ByName(ctx context.Context, name string) (User, error) {
	u, err := queryOne[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE name = $1", name)
	if err != nil {
		return User{}, fmt.Errorf("get user %q: %w", name, err)
	}
	return u, nil
}

// ByIdentity returns the user linked to a subject at an identity provider.
func (t Users) ByIdentity(ctx context.Context, issuer, subject string) (User, error) {
	u, err := queryOne[User](ctx, t.c, "SELECT "+userColumns+` FROM users
		WHERE id = (SELECT user_id FROM identities WHERE issuer = $1 AND subject = $2)`, issuer, subject)
	if err != nil {
		return User{}, fmt.Errorf("get user of identity provider: %w", err)
	}
	return u, nil
}

// LinkIdentity links a user to a subject at an identity provider. It fails with
// [ErrExists] if the subject is already linked, and with [ErrNotFound] if the
// user does not exist.
func (t Users) LinkIdentity(ctx context.Context, id, issuer, subject string) error {
	err := t.c.insert(ctx, "identities", "issuer, subject, user_id", []any{issuer, subject, id})
	if err != nil {
		return fmt.Errorf("link user %q to identity provider: %w", id, toNotFound(err))
	}
	return nil
}

// Update replaces a user's display name, email address, and admin and disabled
// flags.
func (t Users) Update(ctx context.Context, u User) error {
	err := t.c.execAffecting(ctx, "UPDATE users SET display = $2, email = $3, admin = $4, disabled = $5 WHERE id = $1",
		u.ID, u.Display, u.Email, u.Admin, u.Disabled)
	if err != nil {
		return fmt.Errorf("change user %q: %w", u.ID, err)
	}
	return nil
}

// SetPassword replaces the password hash; "" removes the password.
func (t Users) SetPassword(ctx context.Context, id, hash string) error {
	if err := t.c.execAffecting(ctx, "UPDATE users SET password = $2 WHERE id = $1", id, hash); err != nil {
		return fmt.Errorf("set the password of user %q: %w", id, err)
	}
	return nil
}

// touchInterval is the minimum interval between recorded uses of an account, a
// login or a token.
const touchInterval = time.Minute

// Touch records a user's activity, at most once a minute.
func (t Users) Touch(ctx context.Context, id string, at time.Time) error {
	_, err := t.c.exec(ctx, "UPDATE users SET seen = $2 WHERE id = $1 AND seen < $3", id, timestamp(at), timestamp(at.Add(-touchInterval)))
	if err != nil {
		return fmt.Errorf("record activity of user %q: %w", id, err)
	}
	return nil
}

// Delete deletes a user with all tokens, logins, memberships, notifications and
// ratings, and the defaults, settings and secrets of the user's namespace. It
// fails with [ErrReferenced] while the namespace holds resources or the user
// has conversations.
func (t Users) Delete(ctx context.Context, id string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.clearNamespace(ctx, UserNamespace(id)); err != nil {
			return err
		}
		if n, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM sessions WHERE owner = $1", id); err != nil || n > 0 {
			return referencedError(err, "%d conversations", n)
		}
		return c.execAffecting(ctx, "DELETE FROM users WHERE id = $1", id)
	})
	if err != nil {
		return fmt.Errorf("delete user %q: %w", id, err)
	}
	return nil
}

// List returns the users sorted by name, and the cursor of the next page.
func (t Users) List(ctx context.Context, p Page) ([]User, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list users: %w", err)
	}
	users, err := queryAll[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE name > $1 ORDER BY name LIMIT $2", keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list users: %w", err)
	}
	users, next := cutPage(p, users, func(u User) []string { return []string{u.Name} })
	return users, next, nil
}

// CountAdmins returns the number of administrators who can sign in.
func (t Users) CountAdmins(ctx context.Context) (int64, error) {
	n, err := queryScalar[int64](ctx, t.c, "SELECT count(*) FROM users WHERE admin AND NOT disabled")
	if err != nil {
		return 0, fmt.Errorf("count administrators: %w", err)
	}
	return n, nil
}
