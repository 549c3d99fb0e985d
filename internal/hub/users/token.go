package users

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Tokens manages the API tokens of users.
type Tokens struct{ b *core }

// List returns the tokens of a user, oldest first, at most [MaxTokens].
func (t Tokens) List(ctx context.Context, p account.Principal, user account.UserID) ([]account.Token, error) {
	if err := account.Check(p, account.TokenList, account.OwnedBy(user)); err != nil {
		return nil, err
	}
	rows, err := t.b.db.Tokens.ListByUser(ctx, string(user))
	out := make([]account.Token, len(rows))
	for i, row := range rows {
		out[i] = tokenOf(row)
	}
	return out, err
}

// ValidScopes returns the scopes of the valid tokens among the given ids, at
// most [store.MaxPage]. Revoked and expired tokens are left out. The hub itself
// calls it, to end connections.
func (t Tokens) ValidScopes(ctx context.Context, ids ...string) (map[string]account.Scopes, error) {
	rows, err := t.b.db.Tokens.GetMany(ctx, ids)
	if err != nil {
		return nil, err
	}
	good, now := map[string]account.Scopes{}, time.Now()
	for _, row := range rows {
		if row.Expires.IsZero() || now.Before(row.Expires) {
			good[row.ID] = tokenOf(row).Scopes
		}
	}
	return good, nil
}

// Create creates a token of the principal. It expires after life, or never if
// life is 0. The returned text is not stored. Create fails with an
// [*InvalidError], with an [*account.DeniedError] for scopes that the principal
// does not have, and with [store.ErrTooMany].
func (t Tokens) Create(ctx context.Context, p account.Principal, name string, scopes account.Scopes, life time.Duration) (string, account.Token, error) {
	a := auditedAction{by: p, action: account.TokenCreate, in: store.UserNamespace(string(p.User)), details: map[string]any{"name": name, "scopes": scopes.Names()}}
	if err := t.b.authorize(ctx, a, account.OwnedBy(p.User)); err != nil {
		return "", account.Token{}, err
	}
	switch {
	case scopes == 0:
		return "", account.Token{}, &InvalidError{"scopes", "must not be empty"}
	case !scopes.Within(p.Scopes):
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
			return fmt.Errorf("create token: %w: you have %d", store.ErrTooMany, len(held))
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

// Revoke revokes a token of a user.
func (t Tokens) Revoke(ctx context.Context, p account.Principal, user account.UserID, id string) error {
	a := auditedAction{by: p, action: account.TokenRevoke, in: store.UserNamespace(string(user)), subject: id}
	if err := t.b.authorize(ctx, a, account.OwnedBy(user)); err != nil {
		return err
	}
	return t.b.commit(ctx, &a, func(tx *store.Tx) error { return tx.Tokens.Delete(ctx, string(user), id) })
}
