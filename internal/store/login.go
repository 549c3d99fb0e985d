package store

import (
	"context"
	"fmt"
	"time"
)

// Login is a signed-in user's browser session. Only the hash of its cookie is
// stored.
type Login struct {
	Hash     []byte // SHA-256 of the cookie
	UserID   string
	Agent    string    // User-Agent of the browser
	Created  time.Time // set by Create if zero; unchanged when the cookie is replaced
	LastUsed time.Time
	Expires  time.Time // not extended by use
}

const loginColumns = "hash, user_id, agent, created, used, expires"

func (l *Login) fields() []any {
	return []any{&l.Hash, &l.UserID, &l.Agent, (*timestamp)(&l.Created), (*timestamp)(&l.LastUsed), (*timestamp)(&l.Expires)}
}

// Logins stores users' browser sessions.
type Logins struct{ c conn }

// Create adds a login and returns it as stored. It fails with [ErrNotFound] if
// the user does not exist.
func (t Logins) Create(ctx context.Context, l Login) (Login, error) {
	setDefaultTime(&l.Created)
	l.LastUsed, l.Expires = l.Created, fromMillis(toMillis(l.Expires))
	if err := t.c.insert(ctx, "logins", loginColumns, l.fields()); err != nil {
		return Login{}, fmt.Errorf("sign in user %q: %w", l.UserID, toNotFound(err))
	}
	return l, nil
}

// Get returns the login with the given cookie hash, even if it has expired.
func (t Logins) Get(ctx context.Context, hash []byte) (Login, error) {
	l, err := queryOne[Login](ctx, t.c, "SELECT "+loginColumns+" FROM logins WHERE hash = $1", hash)
	if err != nil {
		return Login{}, fmt.Errorf("get login: %w", err)
	}
	return l, nil
}

// GetMany returns the logins with the given cookie hashes, including expired ones. It
// accepts up to [MaxPage] hashes and omits missing logins.
func (t Logins) GetMany(ctx context.Context, hashes [][]byte) ([]Login, error) {
	if len(hashes) > MaxPage {
		return nil, fmt.Errorf("%w: %d cookie hashes, limit %d", ErrTooMany, len(hashes), MaxPage)
	}
	if len(hashes) == 0 {
		return nil, nil
	}
	logins, err := queryAll[Login](ctx, t.c, "SELECT "+loginColumns+" FROM logins WHERE hash IN ("+placeholders(1, len(hashes))+")", toArgs(hashes)...)
	if err != nil {
		return nil, fmt.Errorf("get %d logins: %w", len(hashes), err)
	}
	return logins, nil
}

// ListByUser returns a user's logins, oldest first.
func (t Logins) ListByUser(ctx context.Context, userID string) ([]Login, error) {
	logins, err := queryAll[Login](ctx, t.c, "SELECT "+loginColumns+" FROM logins WHERE user_id = $1 ORDER BY created, hash", userID)
	if err != nil {
		return nil, fmt.Errorf("list logins of user %q: %w", userID, err)
	}
	return logins, nil
}

// Replace replaces a login's cookie. Only one of several concurrent calls with
// the same old cookie succeeds; the others fail with [ErrNotFound].
func (t Logins) Replace(ctx context.Context, old, hash []byte) error {
	if err := t.c.execAffecting(ctx, "UPDATE logins SET hash = $2 WHERE hash = $1", old, hash); err != nil {
		return fmt.Errorf("replace login cookie: %w", err)
	}
	return nil
}

// Touch records the use of a login, at most once a minute.
func (t Logins) Touch(ctx context.Context, hash []byte, at time.Time) error {
	_, err := t.c.exec(ctx, "UPDATE logins SET used = $2 WHERE hash = $1 AND used < $3", hash, timestamp(at), timestamp(at.Add(-touchInterval)))
	if err != nil {
		return fmt.Errorf("record use of login: %w", err)
	}
	return nil
}

// Delete deletes a login. It does nothing if the login does not exist.
func (t Logins) Delete(ctx context.Context, hash []byte) error {
	if _, err := t.c.exec(ctx, "DELETE FROM logins WHERE hash = $1", hash); err != nil {
		return fmt.Errorf("delete login: %w", err)
	}
	return nil
}

// DeleteByUser deletes all of a user's logins, except the one whose hash is
// keptHash, which may be nil. It returns the number of deleted logins.
func (t Logins) DeleteByUser(ctx context.Context, userID string, keptHash []byte) (int64, error) {
	if keptHash == nil {
		keptHash = []byte{} // no hash is empty
	}
	n, err := t.c.exec(ctx, "DELETE FROM logins WHERE user_id = $1 AND hash <> $2", userID, keptHash)
	if err != nil {
		return 0, fmt.Errorf("delete logins of user %q: %w", userID, err)
	}
	return n, nil
}

// Prune deletes logins that expire at or before expiry, or that were last used
// before lastUse. It returns their number.
func (t Logins) Prune(ctx context.Context, expiry, lastUse time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM logins WHERE expires <= $1 OR used < $2", timestamp(expiry), timestamp(lastUse))
	if err != nil {
		return 0, fmt.Errorf("delete old logins: %w", err)
	}
	return n, nil
}
