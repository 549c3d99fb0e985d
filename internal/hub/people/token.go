package people

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Tokens are what programs act with for their users.
type Tokens struct{ b *book }

// Of returns the tokens of a user, the oldest first: at most [MaxTokens].
func (t Tokens) Of(ctx context.Context, p account.Principal, user account.UserID) ([]account.Token, error) {
	if err := account.Check(p, account.TokenList, account.Of(user)); err != nil {
		return nil, err
	}
	rows, err := t.b.db.Tokens.Of(ctx, string(user))
	out := make([]account.Token, len(rows))
	for i, row := range rows {
		out[i] = tokenOf(row)
	}
	return out, err
}

// Good returns what tokens let their users do now, by their IDs, at most
// [store.MaxPage]. Those that were withdrawn or have expired are not in it. It is for the
// hub itself, which asks about what was begun with them.
func (t Tokens) Good(ctx context.Context, ids ...string) (map[string]account.Scopes, error) {
	rows, err := t.b.db.Tokens.Some(ctx, ids)
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

// Make makes a token of the principal for some of his scopes, that ends after some time,
// or never where that is zero. The text is told this once. It fails with an
// [*InvalidError], an [*account.DeniedError] for scopes that he does not have, and with
// [store.ErrTooMany].
func (t Tokens) Make(ctx context.Context, p account.Principal, name string, scopes account.Scopes, life time.Duration) (string, account.Token, error) {
	a := act{by: p, action: account.TokenMake, in: store.UserNamespace(string(p.User)), details: map[string]any{"name": name, "scopes": scopes.Names()}}
	if err := t.b.may(ctx, a, account.Of(p.User)); err != nil {
		return "", account.Token{}, err
	}
	switch {
	case scopes == 0:
		return "", account.Token{}, &InvalidError{"scopes", "there are none"}
	case !scopes.Within(p.Scopes):
		err := &account.DeniedError{Action: account.TokenMake, Scopes: scopes &^ p.Scopes}
		return "", account.Token{}, errors.Join(err, record(ctx, t.b.db.Audit, a, "denied"))
	case name == "":
		return "", account.Token{}, &InvalidError{"name", "it is empty"}
	case life < 0:
		return "", account.Token{}, &InvalidError{"expires", "it would have ended already"}
	}
	if err := checkText("name", name, 100); err != nil {
		return "", account.Token{}, err
	}
	var text string
	var token account.Token
	err := t.b.change(ctx, &a, func(tx *store.Tx) error {
		held, err := tx.Tokens.Of(ctx, string(p.User))
		if err != nil {
			return err
		}
		if len(held) >= MaxTokens {
			return fmt.Errorf("make a token: %w: you have %d", store.ErrTooMany, len(held))
		}
		text, token, err = account.NewTokens(tokenRows{tx.Tokens}).Make(ctx, p, name, scopes, life)
		a.subject = token.ID
		return err
	})
	if err != nil {
		return "", account.Token{}, err
	}
	return text, token, nil
}

// End withdraws a token of a user.
func (t Tokens) End(ctx context.Context, p account.Principal, user account.UserID, id string) error {
	a := act{by: p, action: account.TokenEnd, in: store.UserNamespace(string(user)), subject: id}
	if err := t.b.may(ctx, a, account.Of(user)); err != nil {
		return err
	}
	return t.b.change(ctx, &a, func(tx *store.Tx) error { return tx.Tokens.Delete(ctx, string(user), id) })
}
