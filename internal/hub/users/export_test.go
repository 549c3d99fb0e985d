package users

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

var ErrPasswordChanged = errPasswordChanged

// StartLogin exports startLogin for tests.
func (s SignIns) StartLogin(ctx context.Context, row store.User, hash string, login account.Login) (account.UserID, error) {
	return s.startLogin(ctx, row, hash, login)
}
