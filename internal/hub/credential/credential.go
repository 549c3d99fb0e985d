// Package credential finds the credentials of users for hosts of imports. They
// are secrets of the user, named after the host.
package credential

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// prefix starts the names of secrets that hold credentials.
const prefix = "git_"

// Name returns the name of the secret for a host, "" if the host
// cannot have one. Names are unique, so that no host gets the credential of
// another: a dot becomes _, a hyphen __, and the colon before a port ___. A
// host for which this is ambiguous, such as a.-b, cannot have a secret.
func Name(host string) string {
	host = strings.ToLower(host)
	name := prefix + strings.NewReplacer(".", "_", "-", "__", ":", "___").Replace(host)
	if host == "" || policy.CheckSecretName(name) != nil || hostOfName(name) != host {
		return ""
	}
	return name
}

// hostOfName returns the host that belongs to the name of a secret. In a run of
// _, one is a dot, three are a colon, and an even number are hyphens.
func hostOfName(name string) string {
	var host strings.Builder
	for rest := strings.TrimPrefix(name, prefix); rest != ""; {
		plain := strings.IndexByte(rest, '_')
		if plain != 0 {
			if plain < 0 {
				plain = len(rest)
			}
			host.WriteString(rest[:plain])
			rest = rest[plain:]
			continue
		}
		after := strings.TrimLeft(rest, "_")
		switch run := len(rest) - len(after); {
		case run == 1:
			host.WriteByte('.')
		case run == 3:
			host.WriteByte(':')
		case run%2 == 0:
			host.WriteString(strings.Repeat("-", run/2))
		default:
			return ""
		}
		rest = after
	}
	return host.String()
}

// Store reads credentials from the secrets of users.
type Store struct {
	DB     *store.DB
	Cipher *encryption.Cipher
}

// Get returns the credential of a user for a host, stored as user:password or a
// token. It returns nil if there is none or the user is disabled.
func (s Store) Get(ctx context.Context, user account.UserID, host string) (*remote.Credential, error) {
	name := Name(host)
	if name == "" {
		return nil, nil
	}
	owner := string(agents.NamespaceOwner(store.UserNamespace(string(user))))
	kept, err := s.DB.Secrets.Get(ctx, owner, name)
	if err == nil {
		var who store.User
		if who, err = s.DB.Users.Get(ctx, string(user)); who.Disabled {
			return nil, nil
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	value, err := s.Cipher.Decrypt(string(kept.Encrypted), encryption.Label{Owner: owner, Name: name})
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return parse(string(value)), nil
}

// parse parses user:password or a token.
func parse(value string) *remote.Credential {
	value = strings.TrimSpace(value)
	if user, password, ok := strings.Cut(value, ":"); ok {
		return &remote.Credential{User: user, Password: password}
	}
	return &remote.Credential{Password: value}
}
