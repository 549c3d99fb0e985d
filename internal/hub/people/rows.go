package people

import (
	"context"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// TokenRows keeps the tokens of package account in a database.
func TokenRows(db *store.DB) account.TokenStore { return tokenRows{db.Tokens} }

// LoginRows keeps the sign-ins of package account in a database.
func LoginRows(db *store.DB) account.LoginStore { return loginRows{db.Logins} }

type tokenRows struct{ rows store.Tokens }

func (t tokenRows) AddToken(ctx context.Context, token account.Token) (account.Token, error) {
	row, err := t.rows.Create(ctx, store.Token{
		UserID: string(token.User), Name: token.Name, Prefix: token.Prefix, Hash: token.Hash,
		Scopes: token.Scopes.Names(), Created: token.Made, Expires: token.Expires,
	})
	token.ID = row.ID
	return token, unknown(err)
}

func (t tokenRows) Token(ctx context.Context, prefix string) (account.Token, error) {
	row, err := t.rows.ByPrefix(ctx, prefix)
	if err != nil {
		return account.Token{}, unknown(err)
	}
	return tokenOf(row), nil
}

func (t tokenRows) TokenUsed(ctx context.Context, id string, at time.Time) error {
	return t.rows.Touch(ctx, id, at)
}

// tokenOf is a token as package account has it. A scope that a newer program knows is
// none.
func tokenOf(row store.Token) account.Token {
	t := account.Token{
		ID: row.ID, Prefix: row.Prefix, Hash: row.Hash, User: account.UserID(row.UserID), Name: row.Name,
		Made: row.Created, Expires: row.Expires, Used: row.Used,
	}
	for _, name := range row.Scopes {
		if s, err := account.ParseScopes(name); err == nil {
			t.Scopes |= s
		}
	}
	return t
}

type loginRows struct{ rows store.Logins }

func (l loginRows) AddLogin(ctx context.Context, row account.Login) error {
	_, err := l.rows.Create(ctx, store.Login{
		Hash: row.Hash, UserID: string(row.User), Agent: row.Agent, Created: row.Began, Used: row.Seen, Expires: row.Ends,
	})
	return unknown(err)
}

func (l loginRows) Login(ctx context.Context, hash []byte) (account.Login, error) {
	row, err := l.rows.Get(ctx, hash)
	if err != nil {
		return account.Login{}, unknown(err)
	}
	return loginOf(row), nil
}

func loginOf(row store.Login) account.Login {
	return account.Login{
		Hash: row.Hash, User: account.UserID(row.UserID), Agent: row.Agent, Began: row.Created, Seen: row.Used, Ends: row.Expires,
	}
}

func (l loginRows) LoginSeen(ctx context.Context, hash []byte, at time.Time) error {
	return l.rows.Touch(ctx, hash, at)
}

func (l loginRows) ReplaceLogin(ctx context.Context, old, hash []byte) error {
	return unknown(l.rows.Replace(ctx, old, hash))
}

func (l loginRows) RemoveLogin(ctx context.Context, hash []byte) error {
	return l.rows.Delete(ctx, hash)
}

// unknown is how package account is told that there is no such row.
func unknown(err error) error {
	if errors.Is(err, store.ErrNotFound) {
		return account.ErrUnknown
	}
	return err
}
