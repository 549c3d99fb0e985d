package store

import (
	"context"
	"fmt"
	"strings"
	"time"
)

// Secret is an encrypted value. Decrypting it requires its owner and name.
type Secret struct {
	Owner     string // for example "user:ID", "skill:ID" or "session:ID"
	Name      string
	Encrypted []byte // nil in lists
	KeyID     string // ID of the encryption key
	UpdatedBy string
	Updated   time.Time
}

const secretColumns = "owner, name, sealed, key_id, updated_by, updated"

func (s *Secret) fields() []any {
	return []any{&s.Owner, &s.Name, &s.Encrypted, &s.KeyID, &s.UpdatedBy, (*timestamp)(&s.Updated)}
}

// MaxEncrypted is the maximum size of an encrypted value, in bytes.
const MaxEncrypted = 256 << 10

// Secrets stores encrypted values by owner and name.
type Secrets struct{ c conn }

// Put stores a secret, replacing any secret with the same owner and name.
func (t Secrets) Put(ctx context.Context, s Secret) error {
	if len(s.Encrypted) == 0 || len(s.Encrypted) > MaxEncrypted {
		return fmt.Errorf("store secret %q: %w: %d bytes, limit %d", s.Name, ErrInvalid, len(s.Encrypted), MaxEncrypted)
	}
	s.Updated = now()
	_, err := t.c.changeSecretOf(ctx, s.Owner, s.Name, func(c conn) (int64, error) {
		return c.exec(ctx, "INSERT INTO secrets ("+secretColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (owner, name) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id, updated_by = excluded.updated_by, updated = excluded.updated`,
			s.fields()...)
	})
	if err != nil {
		return fmt.Errorf("store secret %q: %w", s.Name, err)
	}
	return nil
}

// Get returns a secret with its encrypted value.
func (t Secrets) Get(ctx context.Context, owner, name string) (Secret, error) {
	s, err := queryOne[Secret](ctx, t.c, "SELECT "+secretColumns+" FROM secrets WHERE owner = $1 AND name = $2", owner, name)
	if err != nil {
		return Secret{}, fmt.Errorf("get secret %q: %w", name, err)
	}
	return s, nil
}

// secretInfo is a secret without its value.
type secretInfo struct{ Secret }

func (b *secretInfo) fields() []any {
	return []any{&b.Owner, &b.Name, &b.KeyID, &b.UpdatedBy, (*timestamp)(&b.Updated)}
}

// List returns up to [MaxPage] of an owner's secrets, sorted by name, without
// their values.
func (t Secrets) List(ctx context.Context, owner string) ([]Secret, error) {
	found, err := queryAll[secretInfo](ctx, t.c, "SELECT owner, name, key_id, updated_by, updated FROM secrets WHERE owner = $1 ORDER BY name LIMIT $2", owner, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list secrets of %q: %w", owner, err)
	}
	out := make([]Secret, len(found))
	for i, b := range found {
		out[i] = b.Secret
	}
	return out, nil
}

// KeyIDs returns the IDs of all keys that secrets are encrypted with, sorted.
func (t Secrets) KeyIDs(ctx context.Context) ([]string, error) {
	ids, err := queryScalars[string](ctx, t.c, "SELECT DISTINCT key_id FROM secrets ORDER BY key_id")
	if err != nil {
		return nil, fmt.Errorf("list keys of secrets: %w", err)
	}
	return ids, nil
}

// ListByNamespaces returns up to limit secrets, with their encrypted values, of a
// session and of namespaces with their skills and resources.
func (t Secrets) ListByNamespaces(ctx context.Context, session string, namespaces []Namespace, limit int) ([]Secret, error) {
	in := "(" + placeholders(3, len(namespaces)) + ")"
	columns := "SELECT x." + strings.ReplaceAll(secretColumns, ", ", ", x.")
	found, err := queryAll[Secret](ctx, t.c, "SELECT "+secretColumns+" FROM ("+
		columns+" FROM secrets x WHERE x.owner = 'session:' || $1 UNION ALL "+
		columns+" FROM secrets x WHERE x.owner IN "+in+" UNION ALL "+
		columns+" FROM skills s JOIN secrets x ON x.owner = 'skill:' || s.id WHERE s.namespace IN "+in+" UNION ALL "+
		columns+" FROM kinds k JOIN secrets x ON x.owner = 'server:' || k.id WHERE k.namespace IN "+in+") found LIMIT $2",
		append([]any{session, limit}, toArgs(namespaces)...)...)
	if err != nil {
		return nil, fmt.Errorf("list secrets of namespaces: %w", err)
	}
	return found, nil
}

// Delete deletes a secret. It fails with [ErrNotFound] if the secret does not
// exist.
func (t Secrets) Delete(ctx context.Context, owner, name string) error {
	n, err := t.c.changeSecretOf(ctx, owner, name, func(c conn) (int64, error) {
		return c.exec(ctx, "DELETE FROM secrets WHERE owner = $1 AND name = $2", owner, name)
	})
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("delete secret %q: %w", name, err)
	}
	return nil
}

// DeleteByOwner deletes all of an owner's secrets and returns their number.
func (t Secrets) DeleteByOwner(ctx context.Context, owner string) (int64, error) {
	n, err := t.c.changeSecret(ctx, PlatformPrefix, func(c conn) (int64, error) {
		return c.exec(ctx, "DELETE FROM secrets WHERE owner = $1", owner)
	})
	if err != nil {
		return 0, fmt.Errorf("delete secrets of %q: %w", owner, err)
	}
	return n, nil
}

// changeSecretOf is like changeSecret for a secret of the given owner. Secrets of a
// session do not affect revisions: only the session uses them.
func (c conn) changeSecretOf(ctx context.Context, owner, name string, f func(conn) (int64, error)) (int64, error) {
	if strings.HasPrefix(owner, sessionOwner) {
		return f(c)
	}
	return c.changeSecret(ctx, name, f)
}

// sessionOwner is the prefix of the owners of the secrets of sessions. The session's
// ID follows.
const sessionOwner = "session:"

// pruneSecrets deletes the secrets of missing sessions. 9 is the position after
// sessionOwner.
const pruneSecrets = `DELETE FROM secrets WHERE owner LIKE 'session:%'
	AND NOT EXISTS (SELECT 1 FROM sessions s WHERE s.id = substr(secrets.owner, 9))`

// Prune deletes the secrets of sessions that no longer exist, and returns their
// number. An older version of the hub does not delete them with the session.
func (t Secrets) Prune(ctx context.Context) (int64, error) {
	n, err := t.c.exec(ctx, pruneSecrets)
	if err != nil {
		return 0, fmt.Errorf("delete secrets without a session: %w", err)
	}
	return n, nil
}

// PlatformState returns a text that changes when a platform value of the owners, or
// a grant to the principals, is added, replaced or deleted.
func (t Secrets) PlatformState(ctx context.Context, owners, principals []string) (string, error) {
	query := `SELECT
		(SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(COALESCE(SUM(updated), 0) AS TEXT) FROM secrets
			WHERE owner IN (` + placeholders(1, len(owners)) + `) AND name LIKE 'variable.%')
		|| ' ' || (SELECT CAST(COUNT(*) AS TEXT) || ' ' || CAST(COALESCE(MAX(seq), 0) AS TEXT) || ' ' || CAST(COALESCE(SUM(seq), 0) AS TEXT) FROM grants
			WHERE principal IN (` + placeholders(len(owners)+1, len(principals)) + `))`
	state, err := queryScalar[string](ctx, t.c, query, append(toArgs(owners), toArgs(principals)...)...)
	if err != nil {
		return "", fmt.Errorf("read state of platform values: %w", err)
	}
	return state, nil
}
