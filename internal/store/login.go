package store

import (
	"context"
	"fmt"
	"time"
)

// Login is a person signed in with a browser. The value of the cookie is not kept,
// only its hash.
type Login struct {
	Hash    []byte // SHA-256 of the cookie
	UserID  string
	Agent   string    // what the browser calls itself
	Created time.Time // set by Create where it is zero; kept when the cookie is replaced
	Used    time.Time
	Expires time.Time // whatever happens
}

const loginColumns = "hash, user_id, agent, created, used, expires"

func (l *Login) fields() []any {
	return []any{&l.Hash, &l.UserID, &l.Agent, (*stamp)(&l.Created), (*stamp)(&l.Used), (*stamp)(&l.Expires)}
}

// Logins keeps who is signed in.
type Logins struct{ c conn }

// Create adds a login and returns it as it is kept. A user that is not there is
// [ErrNotFound].
func (t Logins) Create(ctx context.Context, l Login) (Login, error) {
	orNow(&l.Created)
	l.Used, l.Expires = l.Created, moment(millis(l.Expires))
	if err := t.c.insert(ctx, "logins", loginColumns, l.fields()); err != nil {
		return Login{}, fmt.Errorf("sign in user %q: %w", l.UserID, parentless(err))
	}
	return l, nil
}

// Get returns the login of a cookie, also one that has expired.
func (t Logins) Get(ctx context.Context, hash []byte) (Login, error) {
	l, err := one[Login](ctx, t.c, "SELECT "+loginColumns+" FROM logins WHERE hash = $1", hash)
	if err != nil {
		return Login{}, fmt.Errorf("login: %w", err)
	}
	return l, nil
}

// Of returns the logins of a user, the oldest first.
func (t Logins) Of(ctx context.Context, userID string) ([]Login, error) {
	logins, err := all[Login](ctx, t.c, "SELECT "+loginColumns+" FROM logins WHERE user_id = $1 ORDER BY created, hash", userID)
	if err != nil {
		return nil, fmt.Errorf("logins of user %q: %w", userID, err)
	}
	return logins, nil
}

// Replace gives a login another cookie. Of two that replace the same one, one
// fails with [ErrNotFound].
func (t Logins) Replace(ctx context.Context, old, hash []byte) error {
	if err := t.c.mustChange(ctx, "UPDATE logins SET hash = $2 WHERE hash = $1", old, hash); err != nil {
		return fmt.Errorf("replace a login: %w", err)
	}
	return nil
}

// Touch notes that a login was used, at most once a minute.
func (t Logins) Touch(ctx context.Context, hash []byte, at time.Time) error {
	_, err := t.c.exec(ctx, "UPDATE logins SET used = $2 WHERE hash = $1 AND used < $3", hash, stamp(at), stamp(at.Add(-touchEvery)))
	if err != nil {
		return fmt.Errorf("note a login: %w", err)
	}
	return nil
}

// Delete ends a login; one that is not there is ended already.
func (t Logins) Delete(ctx context.Context, hash []byte) error {
	if _, err := t.c.exec(ctx, "DELETE FROM logins WHERE hash = $1", hash); err != nil {
		return fmt.Errorf("end a login: %w", err)
	}
	return nil
}

// DeleteOf ends all logins of a user, but that with the hash keep, and returns how
// many.
func (t Logins) DeleteOf(ctx context.Context, userID string, keep []byte) (int64, error) {
	if keep == nil {
		keep = []byte{} // no hash is empty
	}
	n, err := t.c.exec(ctx, "DELETE FROM logins WHERE user_id = $1 AND hash <> $2", userID, keep)
	if err != nil {
		return 0, fmt.Errorf("end the logins of user %q: %w", userID, err)
	}
	return n, nil
}

// Prune removes the logins that had expired by then, or were not used since idle,
// and returns how many.
func (t Logins) Prune(ctx context.Context, expired, idle time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM logins WHERE expires <= $1 OR used < $2", stamp(expired), stamp(idle))
	if err != nil {
		return 0, fmt.Errorf("remove old logins: %w", err)
	}
	return n, nil
}
