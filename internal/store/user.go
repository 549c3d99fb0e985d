package store

import (
	"context"
	"fmt"
	"time"
)

// User is a person with an account.
type User struct {
	ID       string // set by Create where it is ""
	Name     string // that nobody else has
	Display  string
	Email    string
	Password string // a hash with its parameters; "" where the person cannot sign in with one
	Admin    bool
	Disabled bool
	Created  time.Time // set by Create where it is zero
	Seen     time.Time // when the person was last there
}

const userColumns = "id, name, display, email, password, admin, disabled, created, seen"

func (u *User) fields() []any {
	return []any{&u.ID, &u.Name, &u.Display, &u.Email, &u.Password, &u.Admin, &u.Disabled, (*stamp)(&u.Created), (*stamp)(&u.Seen)}
}

// Users keeps the accounts of people.
type Users struct{ c conn }

// Create adds a user and returns it as it is kept. A name or an id that another
// one has is [ErrExists].
func (t Users) Create(ctx context.Context, u User) (User, error) {
	orID(&u.ID)
	orNow(&u.Created)
	u.Seen = moment(millis(u.Seen))
	if err := t.c.insert(ctx, "users", userColumns, u.fields()); err != nil {
		return User{}, fmt.Errorf("add user %q: %w", u.Name, err)
	}
	return u, nil
}

// Get returns the user with an id.
func (t Users) Get(ctx context.Context, id string) (User, error) {
	u, err := one[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE id = $1", id)
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", id, err)
	}
	return u, nil
}

// ByName returns the user with a name.
func (t Users) ByName(ctx context.Context, name string) (User, error) {
	u, err := one[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE name = $1", name)
	if err != nil {
		return User{}, fmt.Errorf("user %q: %w", name, err)
	}
	return u, nil
}

// ByIdentity returns the user that an identity provider knows by subject.
func (t Users) ByIdentity(ctx context.Context, issuer, subject string) (User, error) {
	u, err := one[User](ctx, t.c, "SELECT "+userColumns+` FROM users
		WHERE id = (SELECT user_id FROM identities WHERE issuer = $1 AND subject = $2)`, issuer, subject)
	if err != nil {
		return User{}, fmt.Errorf("user of the identity provider: %w", err)
	}
	return u, nil
}

// Link lets a user be found by what an identity provider calls the person. One
// that is linked already is [ErrExists], a user that is not there [ErrNotFound].
func (t Users) Link(ctx context.Context, id, issuer, subject string) error {
	err := t.c.insert(ctx, "identities", "issuer, subject, user_id", []any{issuer, subject, id})
	if err != nil {
		return fmt.Errorf("link user %q: %w", id, parentless(err))
	}
	return nil
}

// Update replaces the display name, the address and what the user is allowed.
func (t Users) Update(ctx context.Context, u User) error {
	err := t.c.mustChange(ctx, "UPDATE users SET display = $2, email = $3, admin = $4, disabled = $5 WHERE id = $1",
		u.ID, u.Display, u.Email, u.Admin, u.Disabled)
	if err != nil {
		return fmt.Errorf("change user %q: %w", u.ID, err)
	}
	return nil
}

// SetPassword replaces the hash of the password; "" is none.
func (t Users) SetPassword(ctx context.Context, id, hash string) error {
	if err := t.c.mustChange(ctx, "UPDATE users SET password = $2 WHERE id = $1", id, hash); err != nil {
		return fmt.Errorf("set the password of user %q: %w", id, err)
	}
	return nil
}

// touchEvery is how often it is noted that something was used.
const touchEvery = time.Minute

// Touch notes that the user was there, at most once a minute.
func (t Users) Touch(ctx context.Context, id string, at time.Time) error {
	_, err := t.c.exec(ctx, "UPDATE users SET seen = $2 WHERE id = $1 AND seen < $3", id, stamp(at), stamp(at.Add(-touchEvery)))
	if err != nil {
		return fmt.Errorf("note user %q: %w", id, err)
	}
	return nil
}

// Delete removes a user with all that is the user's: tokens, logins, memberships,
// notices, ratings, and the defaults, settings and secrets of the namespace. It fails with [ErrReferenced] while the user's namespace has skills or kinds, or the
// user has conversations.
func (t Users) Delete(ctx context.Context, id string) error {
	err := t.c.atomic(ctx, func(c conn) error {
		if err := c.clear(ctx, UserNamespace(id)); err != nil {
			return err
		}
		if n, err := scalar[int64](ctx, c, "SELECT count(*) FROM sessions WHERE owner = $1", id); err != nil || n > 0 {
			return referenced(err, "%d conversations", n)
		}
		return c.mustChange(ctx, "DELETE FROM users WHERE id = $1", id)
	})
	if err != nil {
		return fmt.Errorf("delete user %q: %w", id, err)
	}
	return nil
}

// List returns users by name, and how to ask for more.
func (t Users) List(ctx context.Context, p Page) ([]User, string, error) {
	keys, err := p.keys(1)
	if err != nil {
		return nil, "", fmt.Errorf("list users: %w", err)
	}
	users, err := all[User](ctx, t.c, "SELECT "+userColumns+" FROM users WHERE name > $1 ORDER BY name LIMIT $2", keys[0], p.limit()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list users: %w", err)
	}
	users, next := cut(p, users, func(u User) []string { return []string{u.Name} })
	return users, next, nil
}

// Admins counts the users that are administrators and can sign in.
func (t Users) Admins(ctx context.Context) (int64, error) {
	n, err := scalar[int64](ctx, t.c, "SELECT count(*) FROM users WHERE admin AND NOT disabled")
	if err != nil {
		return 0, fmt.Errorf("count administrators: %w", err)
	}
	return n, nil
}
