package users

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// setupTime is the lifetime of a setup token.
const setupTime = 24 * time.Hour

var setupLabel = encryption.Label{Owner: "hub", Name: "first administrator"}

// setupToken is the content of the link that creates the first administrator. The
// link contains it in encrypted form, so that every node accepts the link and no
// node has to store it.
type setupToken struct {
	Ends time.Time `json:"ends"`
}

// HasNoAdmin reports whether the hub has no administrator who can sign in.
func (s SignIns) HasNoAdmin(ctx context.Context) (bool, error) {
	n, err := s.b.db.Users.CountAdmins(ctx)
	return n == 0, err
}

// NewSetupToken returns a token that lets a user become the first administrator
// within a day. It consists of letters, digits and the characters . _ and -.
func (s SignIns) NewSetupToken() (string, error) {
	data, err := json.Marshal(setupToken{time.Now().Add(setupTime)})
	if err != nil {
		return "", err
	}
	return s.b.cipher.Encrypt(data, setupLabel)
}

// CreateFirstAdmin creates the first administrator. It requires a token from
// [SignIns.NewSetupToken] and fails with [ErrSetup] if the token is invalid. It
// fails with [ErrHasAdmin] if there is already an administrator, and with the
// errors of [Users.Create].
func (s SignIns) CreateFirstAdmin(ctx context.Context, text, name, password string) (account.UserID, error) {
	data, err := s.b.cipher.Decrypt(text, setupLabel)
	if err != nil {
		return "", ErrSetup
	}
	var link setupToken
	if err := json.Unmarshal(data, &link); err != nil || !time.Now().Before(link.Ends) {
		return "", ErrSetup
	}
	return s.CreateFirstAdminAsOperator(ctx, name, password)
}

// CreateFirstAdminAsOperator is like [SignIns.CreateFirstAdmin], but requires no
// token. Only the hub's operator may call it.
func (s SignIns) CreateFirstAdminAsOperator(ctx context.Context, name, password string) (account.UserID, error) {
	if vacant, err := s.HasNoAdmin(ctx); err != nil {
		return "", err
	} else if !vacant {
		return "", ErrHasAdmin
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	hash, err := s.b.passwords.Hash(ctx, account.UserClient(account.UserID(name)), name, password)
	if err != nil {
		return "", err
	}
	id := store.NewID()
	a := auditedAction{by: account.Principal{User: account.UserID(id)}, action: account.UserManage, in: store.UserNamespace(id), subject: id,
		details: map[string]any{"change": "first administrator", "name": name}}
	return account.UserID(id), s.b.commit(ctx, &a, func(tx *store.Tx) error {
		n, err := tx.Users.CountAdmins(ctx)
		if err != nil {
			return err
		}
		if n > 0 {
			return ErrHasAdmin
		}
		_, err = tx.Users.Create(ctx, store.User{ID: id, Name: name, Password: hash, Admin: true})
		return err
	})
}

// EnsureLocalUser creates the user of a hub without accounts if the user does
// not exist yet. Other rows of the database refer to this user. The user has no
// password, and no administrator rights once there are accounts.
func (s SignIns) EnsureLocalUser(ctx context.Context) error {
	p := account.SinglePrincipal()
	_, err := s.b.db.Users.Create(ctx, store.User{ID: string(p.User), Name: p.Name})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}
