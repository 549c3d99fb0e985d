package users

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// NewTokenStore returns an [account.TokenStore] backed by a database.
func NewTokenStore(db *store.DB) account.TokenStore { return tokenStore{db.Tokens} }

// NewLoginStore returns an [account.LoginStore] backed by a database.
func NewLoginStore(db *store.DB) account.LoginStore { return loginStore{db.Logins} }

type tokenStore struct{ rows store.Tokens }

func (t tokenStore) AddToken(ctx context.Context, token account.Token) (account.Token, error) {
	row, err := t.rows.Create(ctx, store.Token{
		UserID: string(token.User), Name: token.Name, Prefix: token.Prefix, Hash: token.Hash,
		Scopes: token.Scopes.Names(), Created: token.Created, Expires: token.Expires,
	})
	token.ID = row.ID
	return token, accountError(err)
}

func (t tokenStore) GetToken(ctx context.Context, prefix string) (account.Token, error) {
	row, err := t.rows.ByPrefix(ctx, prefix)
	if err != nil {
		return account.Token{}, accountError(err)
	}
	return newToken(row), nil
}

func (t tokenStore) TouchToken(ctx context.Context, id string, at time.Time) error {
	return t.rows.Touch(ctx, id, at)
}

// newToken converts a stored token to an [account.Token]. It ignores scopes
// that only a newer version of the program supports.
func newToken(row store.Token) account.Token {
	t := account.Token{
		ID: row.ID, Prefix: row.Prefix, Hash: row.Hash, User: account.UserID(row.UserID), Name: row.Name,
		Created: row.Created, Expires: row.Expires, LastUsed: row.LastUsed,
	}
	for _, name := range row.Scopes {
		if s, err := account.ParseScopes(name); err == nil {
			t.Scopes |= s
		}
	}
	return t
}

type loginStore struct{ rows store.Logins }

func (l loginStore) AddLogin(ctx context.Context, row account.Login) error {
	return accountError(addLogin(ctx, l.rows, row))
}

func addLogin(ctx context.Context, rows store.Logins, l account.Login) error {
	_, err := rows.Create(ctx, store.Login{
		Hash: l.Hash, UserID: string(l.User), Agent: l.Agent, Created: l.Created, LastUsed: l.LastSeen, Expires: l.Expires,
	})
	return err
}

func (l loginStore) GetLogin(ctx context.Context, hash []byte) (account.Login, error) {
	row, err := l.rows.Get(ctx, hash)
	if err != nil {
		return account.Login{}, accountError(err)
	}
	return newLogin(row), nil
}

func newLogin(row store.Login) account.Login {
	return account.Login{
		Hash: row.Hash, User: account.UserID(row.UserID), Agent: row.Agent, Created: row.Created, LastSeen: row.LastUsed, Expires: row.Expires,
	}
}

func (l loginStore) TouchLogin(ctx context.Context, hash []byte, at time.Time) error {
	return l.rows.Touch(ctx, hash, at)
}

func (l loginStore) ReplaceLogin(ctx context.Context, old, hash []byte) error {
	return accountError(l.rows.Replace(ctx, old, hash))
}

func (l loginStore) RemoveLogin(ctx context.Context, hash []byte) error {
	return l.rows.Delete(ctx, hash)
}

// accountError converts [store.ErrNotFound] to [account.ErrNotFound].
func accountError(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return account.ErrNotFound
	}
	return err
}
