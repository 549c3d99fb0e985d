package store

import (
	"context"
	"fmt"
	"time"
)

// Token is an API token that lets a program act for a user. Only its hash is
// stored.
type Token struct {
	ID       string // set by Create if ""
	UserID   string
	Name     string // chosen by the user
	Prefix   string // identifies the token; unique
	Hash     []byte // SHA-256 of the token
	Scopes   []string
	Created  time.Time // set by Create if zero
	Expires  time.Time // zero for never
	LastUsed time.Time // zero if never used
}

const tokenColumns = "id, user_id, name, prefix, hash, scopes, created, expires, used"

func (t *Token) fields() []any {
	return []any{&t.ID, &t.UserID, &t.Name, &t.Prefix, &t.Hash, (*stringList)(&t.Scopes), (*timestamp)(&t.Created), (*timestamp)(&t.Expires), (*timestamp)(&t.LastUsed)}
}

// Tokens stores API tokens.
type Tokens struct{ c conn }

// Create adds a token and returns it as stored. It fails with [ErrExists] if
// the prefix is taken, and with [ErrNotFound] if the user does not exist.
func (t Tokens) Create(ctx context.Context, token Token) (Token, error) {
	setDefaultID(&token.ID)
	setDefaultTime(&token.Created)
	token.Expires, token.LastUsed = fromMillis(toMillis(token.Expires)), time.Time{}
	if err := t.c.insert(ctx, "tokens", tokenColumns, token.fields()); err != nil {
		return Token{}, fmt.Errorf("add a token of user %q: %w", token.UserID, toNotFound(err))
	}
	return token, nil
}

// ByPrefix returns the token with the given prefix, even if it has expired. The
// caller must compare the hash.
func (t Tokens) ByPrefix(ctx context.Context, prefix string) (Token, error) {
	token, err := queryOne[Token](ctx, t.c, "SELECT "+tokenColumns+" FROM tokens WHERE prefix = $1", prefix)
	if err != nil {
		return Token{}, fmt.Errorf("get token: %w", err)
	}
	return token, nil
}

// GetMany returns the tokens with the given ids, including expired ones. It
// accepts up to [MaxPage] ids, and omits missing tokens and those of disabled
// users.
func (t Tokens) GetMany(ctx context.Context, ids []string) ([]Token, error) {
	if len(ids) > MaxPage {
		return nil, fmt.Errorf("%w: %d token IDs, limit %d", ErrTooMany, len(ids), MaxPage)
	}
	if len(ids) == 0 {
		return nil, nil
	}
	tokens, err := queryAll[Token](ctx, t.c, "SELECT "+tokenColumns+" FROM tokens WHERE id IN ("+placeholders(1, len(ids))+") AND user_id IN (SELECT id FROM users WHERE NOT disabled)", toArgs(ids)...)
	if err != nil {
		return nil, fmt.Errorf("get %d tokens: %w", len(ids), err)
	}
	return tokens, nil
}

// ListByUser returns a user's tokens, oldest first.
func (t Tokens) ListByUser(ctx context.Context, userID string) ([]Token, error) {
	tokens, err := queryAll[Token](ctx, t.c, "SELECT "+tokenColumns+" FROM tokens WHERE user_id = $1 ORDER BY id", userID)
	if err != nil {
		return nil, fmt.Errorf("list tokens of user %q: %w", userID, err)
	}
	return tokens, nil
}

// Touch records the use of a token, at most once a minute.
func (t Tokens) Touch(ctx context.Context, id string, at time.Time) error {
	_, err := t.c.exec(ctx, "UPDATE tokens SET used = $2 WHERE id = $1 AND used < $3", id, timestamp(at), timestamp(at.Add(-touchInterval)))
	if err != nil {
		return fmt.Errorf("record use of token %q: %w", id, err)
	}
	return nil
}

// Delete revokes a token. It fails with [ErrNotFound] if the user has no such
// token.
func (t Tokens) Delete(ctx context.Context, userID, id string) error {
	if err := t.c.execAffecting(ctx, "DELETE FROM tokens WHERE id = $1 AND user_id = $2", id, userID); err != nil {
		return fmt.Errorf("revoke token %q: %w", id, err)
	}
	return nil
}

// DeleteByUser deletes all of a user's tokens and returns their number.
func (t Tokens) DeleteByUser(ctx context.Context, userID string) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM tokens WHERE user_id = $1", userID)
	if err != nil {
		return 0, fmt.Errorf("delete tokens of user %q: %w", userID, err)
	}
	return n, nil
}
