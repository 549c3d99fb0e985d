package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Tokens manages users' API tokens.
type Tokens struct{ b *core }

// List returns a user's tokens, oldest first.
func (t Tokens) List(ctx context.Context, p account.Principal, user account.UserID) ([]account.Token, error) {
	if err := account.Check(p, account.TokenList, account.OwnedBy(user)); err != nil {
		return nil, err
	}
	rows, err := t.b.db.Tokens.ListByUser(ctx, string(user))
	out := make([]account.Token, len(rows))
	for i, row := range rows {
		out[i] = newToken(row)
	}
	return out, err
}

// ValidScopes returns the scopes of up to [store.MaxPage] tokens by ID. It omits
// revoked and expired tokens, and those of disabled users. It checks no permissions, because the hub itself
// calls it to end connections.
func (t Tokens) ValidScopes(ctx context.Context, ids ...string) (map[string]account.Scopes, error) {
	rows, err := t.b.db.Tokens.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	good, now := map[string]account.Scopes{}, time.Now()
	for _, row := range rows {
		if row.Expires.IsZero() || now.Before(row.Expires) {
			good[row.ID] = newToken(row).Scopes
		}
	}
	return good, nil
}

// Create creates a token for the principal and returns its text, which is not
// stored. The token expires after life, or never if life is 0. Create fails with an
// [*InvalidError], with an [*account.DeniedError] if the principal lacks any of the
// scopes, and with [store.ErrTooMany].
func (t Tokens) Create(ctx context.Context, p account.Principal, name string, scopes account.Scopes, life time.Duration) (string, account.Token, error) {
	a := auditedAction{by: p, action: account.TokenCreate, in: store.UserNamespace(string(p.User)), details: map[string]any{"name": name, "scopes": scopes.Names()}}
	if err := t.b.authorize(ctx, a, account.OwnedBy(p.User)); err != nil {
		return "", account.Token{}, err
	}
	switch {
	case scopes == 0:
		return "", account.Token{}, &InvalidError{"scopes", "must not be empty"}
	case !scopes.IsSubsetOf(p.Scopes):
		err := &account.DeniedError{Action: account.TokenCreate, Scopes: scopes &^ p.Scopes}
		return "", account.Token{}, errors.Join(err, appendAudit(ctx, t.b.db.Audit, a, "denied"))
	case name == "":
		return "", account.Token{}, &InvalidError{"name", "must not be empty"}
	case life < 0:
		return "", account.Token{}, &InvalidError{"expires", "must not be in the past"}
	}
	if err := checkText("name", name, 100); err != nil {
		return "", account.Token{}, err
	}
	var text string
	var token account.Token
	err := t.b.commit(ctx, &a, func(tx *store.Tx) error {
		held, err := tx.Tokens.ListByUser(ctx, string(p.User))
		if err != nil {
			return err
		}
		if len(held) >= MaxTokens {
			return fmt.Errorf("create token: %w: limit %d tokens", store.ErrTooMany, MaxTokens)
		}
		text, token, err = account.NewTokens(tokenStore{tx.Tokens}).Create(ctx, p, name, scopes, life)
		a.subject = token.ID
		return err
	})
	if err != nil {
		return "", account.Token{}, err
	}
	return text, token, nil
}

// Revoke revokes a user's token. It fails with [store.ErrNotFound] if the user has
// no such token.
func (t Tokens) Revoke(ctx context.Context, p account.Principal, user account.UserID, id string) error {
	a := auditedAction{by: p, action: account.TokenRevoke, in: store.UserNamespace(string(user)), subject: id}
	if err := t.b.authorize(ctx, a, account.OwnedBy(user)); err != nil {
		return err
	}
	return t.b.commit(ctx, &a, func(tx *store.Tx) error { return tx.Tokens.Delete(ctx, string(user), id) })
}
