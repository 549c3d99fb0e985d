package agents

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// maxRedacted is the maximum number of values to redact.
const maxRedacted = 5000

// Redacted returns the values that must not appear in what a user publishes from a
// conversation of theirs: those of the conversation, the user, the user's groups and
// the public namespace, and of the skills and resources in them. It fails if there are
// too many to check all of them. The caller must authorize the use of the conversation.
func (s *Secrets) Redacted(ctx context.Context, p account.Principal, conversation string) ([]string, error) {
	namespaces := []store.Namespace{store.Public, store.UserNamespace(string(p.User))}
	for _, group := range slices.Sorted(maps.Keys(p.Groups)) {
		namespaces = append(namespaces, store.GroupNamespace(string(group)))
	}
	found, err := s.r.db.Secrets.ListByNamespaces(ctx, conversation, namespaces, maxRedacted+1)
	switch {
	case err != nil:
		return nil, err
	case len(found) > maxRedacted:
		return nil, fmt.Errorf("redact secrets: %w: limit %d secrets of one user and their groups", store.ErrTooMany, maxRedacted)
	case len(found) > 0 && s.r.opts.Cipher == nil:
		return nil, fmt.Errorf("redact secrets: %w", ErrNoKey)
	}
	out := make([]string, len(found))
	for i, f := range found {
		value, err := s.r.opts.Cipher.Decrypt(string(f.Encrypted), encryption.Label{Owner: f.Owner, Name: f.Name})
		if err != nil {
			return nil, fmt.Errorf("decrypt secret %s: %w", f.Name, err)
		}
		out[i] = string(value)
	}
	return out, nil
}
