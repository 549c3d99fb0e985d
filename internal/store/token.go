package store

import (
	"context"
	"fmt"
	"time"
)

// Token lets a program act for a user. The token itself is not kept, only its hash.
type Token struct {
	ID      string // set by Create where it is ""
	UserID  string
	Name    string // what the person calls it
	Prefix  string // by which it is found; no other token has it
	Hash    []byte // SHA-256 of the token
	Scopes  []string
	Created time.Time // set by Create where it is zero
	Expires time.Time // zero is never
	Used    time.Time // zero is not yet
}

const tokenColumns = "id, user_id, name, prefix, hash, scopes, created, expires, used"

func (t *Token) fields() []any {
	return []any{&t.ID, &t.UserID, &t.Name, &t.Prefix, &t.Hash, (*list)(&t.Scopes), (*stamp)(&t.Created), (*stamp)(&t.Expires), (*stamp)(&t.Used)}
}

// Tokens keeps what programs sign in with.
type Tokens struct{ c conn }

// Create adds a token and returns it as it is kept. A prefix that another one has
// is [ErrExists], a user that is not there [ErrNotFound].
func (t Tokens) Create(ctx context.Context, token Token) (Token, error) {
	orID(&token.ID)
	orNow(&token.Created)
	token.Expires, token.Used = moment(millis(token.Expires)), time.Time{}
	if err := t.c.insert(ctx, "tokens", tokenColumns, token.fields()); err != nil {
		return Token{}, fmt.Errorf("add a token of user %q: %w", token.UserID, parentless(err))
	}
	return token, nil
}

// ByPrefix returns the token with a prefix, also one that has expired. Whether the
// hash is that of the token which was shown, the caller compares.
func (t Tokens) ByPrefix(ctx context.Context, prefix string) (Token, error) {
	token, err := one[Token](ctx, t.c, "SELECT "+tokenColumns+" FROM tokens WHERE prefix = $1", prefix)
	if err != nil {
		return Token{}, fmt.Errorf("token: %w", err)
	}
	return token, nil
}

// Some returns the tokens with IDs, at most [MaxPage], as far as they are there, also
// those that have expired.
func (t Tokens) Some(ctx context.Context, ids []string) ([]Token, error) {
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("%d tokens: %w: more than %d", len(ids), ErrTooMany, MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	tokens, err := all[Token](ctx, t.c, "SELECT "+tokenColumns+" FROM tokens WHERE id IN ("+places(1, len(ids))+")", anys(ids)...)
	if err != nil {
		return nil, fmt.Errorf("tokens: %w", err)
	}
	return tokens, nil
}

// Of returns the tokens of a user, the oldest first.
func (t Tokens) Of(ctx context.Context, userID string) ([]Token, error) {
	tokens, err := all[Token](ctx, t.c, "SELECT "+tokenColumns+" FROM tokens WHERE user_id = $1 ORDER BY id", userID)
	if err != nil {
		return nil, fmt.Errorf("tokens of user %q: %w", userID, err)
	}
	return tokens, nil
}

// Touch notes that a token was used, at most once a minute.
func (t Tokens) Touch(ctx context.Context, id string, at time.Time) error {
	_, err := t.c.exec(ctx, "UPDATE tokens SET used = $2 WHERE id = $1 AND used < $3", id, stamp(at), stamp(at.Add(-touchEvery)))
	if err != nil {
		return fmt.Errorf("note token %q: %w", id, err)
	}
	return nil
}

// Delete revokes a token of a user; that of another one is [ErrNotFound].
func (t Tokens) Delete(ctx context.Context, userID, id string) error {
	if err := t.c.mustChange(ctx, "DELETE FROM tokens WHERE id = $1 AND user_id = $2", id, userID); err != nil {
		return fmt.Errorf("revoke token %q: %w", id, err)
	}
	return nil
}
