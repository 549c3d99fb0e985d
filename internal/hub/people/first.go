package people

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
)

// setupTime is how long the first administrator may take.
const setupTime = 24 * time.Hour

var setupLabel = seal.Label{Owner: "hub", Name: "first administrator"}

// setup is what is in the link with which the first administrator is made. It is sealed,
// so that every node of the hub takes it and none has to keep it.
type setup struct {
	Ends time.Time `json:"ends"`
}

// Vacant reports whether the hub has no administrator who could sign in.
func (s SignIns) Vacant(ctx context.Context) (bool, error) {
	n, err := s.b.db.Users.Admins(ctx)
	return n == 0, err
}

// Setup returns a text that lets somebody become the first administrator, once and for a
// day: letters, digits and .-_ alone.
func (s SignIns) Setup() (string, error) {
	data, err := json.Marshal(setup{time.Now().Add(setupTime)})
	if err != nil {
		return "", err
	}
	return s.b.sealer.Seal(data, setupLabel)
}

// FirstAdmin makes the first administrator for who has the text of [SignIns.Setup]. It
// fails with [ErrSetup] for another text, with [ErrHasAdmin] where there is one, and as
// [Users.Create] does.
func (s SignIns) FirstAdmin(ctx context.Context, text, name, password string) (account.UserID, error) {
	data, err := s.b.sealer.Open(text, setupLabel)
	if err != nil {
		return "", ErrSetup
	}
	var link setup
	if err := json.Unmarshal(data, &link); err != nil || !time.Now().Before(link.Ends) {
		return "", ErrSetup
	}
	return s.Found(ctx, name, password)
}

// Found is [SignIns.FirstAdmin] for the operator of the hub, who needs no text.
func (s SignIns) Found(ctx context.Context, name, password string) (account.UserID, error) {
	if vacant, err := s.Vacant(ctx); err != nil {
		return "", err
	} else if !vacant {
		return "", ErrHasAdmin
	}
	if err := checkName(name); err != nil {
		return "", err
	}
	hash, err := s.b.passwords.Hash(ctx, name, password)
	if err != nil {
		return "", err
	}
	id := store.NewID()
	a := act{by: account.Principal{User: account.UserID(id)}, action: account.UserManage, in: store.UserNamespace(id), subject: id,
		details: map[string]any{"change": "first administrator", "name": name}}
	return account.UserID(id), s.b.change(ctx, &a, func(tx *store.Tx) error {
		n, err := tx.Users.Admins(ctx)
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

// Local makes sure that the user of a hub of one person is there, as rows of others
// name him. He is no administrator once there are accounts, and has no password.
func (s SignIns) Local(ctx context.Context) error {
	p := account.Single()
	_, err := s.b.db.Users.Create(ctx, store.User{ID: string(p.User), Name: p.Name})
	if errors.Is(err, store.ErrExists) {
		return nil
	}
	return err
}
