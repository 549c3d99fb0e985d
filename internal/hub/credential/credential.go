// Package credential finds the credentials with which users import skills from
// private hosts. A credential is a secret of the user, named after the host. Start
// reading at [Store].
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
	"github.com/loadout-dev/loadout/internal/secretname"
	"github.com/loadout-dev/loadout/internal/store"
)

// prefix is the prefix of the names of secrets that contain credentials.
const prefix = "git_"

// Name returns the name of the secret for a host. In the name, a dot becomes _, a
// hyphen __, and the colon before a port ___. Names must be unique, so that no host
// receives the credential of another. For a host whose name would be ambiguous,
// such as a.-b, Name returns "".
func Name(host string) string {
	host = strings.ToLower(host)
	name := prefix + strings.NewReplacer(".", "_", "-", "__", ":", "___").Replace(host)
	if host == "" || secretname.Check(name) != nil || hostOfName(name) != host {
		return ""
	}
	return name
}

// hostOfName returns the host for the name of a secret. It is the inverse of Name:
// a single _ is a dot, three in a row are a colon, and an even number are hyphens.
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

// Store provides access to the credentials that users have stored as secrets.
type Store struct {
	DB     *store.DB
	Cipher *encryption.Cipher
}

// Get returns the credential of a user for a host. It returns nil if there is none
// or the user is disabled.
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
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	value, err := s.Cipher.Decrypt(string(kept.Encrypted), encryption.Label{Owner: owner, Name: name})
	if err != nil {
		return nil, fmt.Errorf("read secret %s: %w", name, err)
	}
	return parseCredential(string(value)), nil
}

// parseCredential parses the value of a secret: user:password or a token.
func parseCredential(value string) *remote.Credential {
	value = strings.TrimSpace(value)
	if user, password, ok := strings.Cut(value, ":"); ok {
		return &remote.Credential{User: user, Password: password}
	}
	return &remote.Credential{Password: value}
}
