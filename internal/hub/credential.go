package hub

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/seal"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
	"github.com/loadout-dev/loadout/remote"
)

// credentialPrefix begins the names of secrets that are shown to hosts which skills are
// imported from.
const credentialPrefix = "git_"

// credentialName is the name of the secret for a host, "" for one that can have none. No
// two hosts have one name, as each would be shown the other's: a dot is _, a hyphen is
// __, and the colon before a port ___, and a host that does not follow from that, as
// a.-b, has none.
func credentialName(host string) string {
	host = strings.ToLower(host)
	name := credentialPrefix + strings.NewReplacer(".", "_", "-", "__", ":", "___").Replace(host)
	if host == "" || policy.CheckSecretName(name) != nil || hostOfName(name) != host {
		return ""
	}
	return name
}

// hostOfName is the host that a name of a secret is read as: of a run of _, an even number
// is hyphens, one is a dot, and three are a colon.
func hostOfName(name string) string {
	var host strings.Builder
	for rest := strings.TrimPrefix(name, credentialPrefix); rest != ""; {
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

// credential is what a user keeps for a host that skills are imported from, as a secret of
// his own: user:password, or a token alone. It is nil where there is none, or the user
// is disabled.
func (h *Hub) credential(ctx context.Context, user account.UserID, host string) (*remote.Credential, error) {
	name := credentialName(host)
	if name == "" {
		return nil, nil
	}
	owner := string(kinds.NamespaceOwner(store.UserNamespace(string(user))))
	kept, err := h.db.Secrets.Get(ctx, owner, name)
	if err == nil {
		var who store.User
		if who, err = h.db.Users.Get(ctx, string(user)); who.Disabled {
			return nil, nil
		}
	}
	if errors.Is(err, store.ErrNotFound) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	value, err := h.sealer.Open(string(kept.Sealed), seal.Label{Owner: owner, Name: name})
	if err != nil {
		return nil, fmt.Errorf("secret %s: %w", name, err)
	}
	return readCredential(string(value)), nil
}

// readCredential reads user:password, or a token.
func readCredential(value string) *remote.Credential {
	value = strings.TrimSpace(value)
	if user, password, ok := strings.Cut(value, ":"); ok {
		return &remote.Credential{User: user, Password: password}
	}
	return &remote.Credential{Password: value}
}
