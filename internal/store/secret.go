package store

import (
	"context"
	"fmt"
	"time"
)

// Secret is a value that only who has the key can read. Which that is, and how the
// value is bound to owner and name, is the cipher's.
type Secret struct {
	Owner     string // whose it is, as "user:ID" or "skill:ID"
	Name      string
	Sealed    []byte // nil in lists
	KeyID     string // by which it was sealed
	UpdatedBy string
	Updated   time.Time
}

const secretColumns = "owner, name, sealed, key_id, updated_by, updated"

func (s *Secret) fields() []any {
	return []any{&s.Owner, &s.Name, &s.Sealed, &s.KeyID, &s.UpdatedBy, (*stamp)(&s.Updated)}
}

// MaxSealed bounds a sealed value, in bytes.
const MaxSealed = 256 << 10

// Secrets keeps sealed values.
type Secrets struct{ c conn }

// Put keeps a secret in place of that of its owner and name.
func (t Secrets) Put(ctx context.Context, s Secret) error {
	if len(s.Sealed) == 0 || len(s.Sealed) > MaxSealed {
		return fmt.Errorf("keep secret %q: %w: it has %d bytes", s.Name, ErrInvalid, len(s.Sealed))
	}
	s.Updated = now()
	_, err := t.c.exec(ctx, "INSERT INTO secrets ("+secretColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (owner, name) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id, updated_by = excluded.updated_by, updated = excluded.updated`,
		s.fields()...)
	if err != nil {
		return fmt.Errorf("keep secret %q: %w", s.Name, err)
	}
	return nil
}

// Get returns a secret.
func (t Secrets) Get(ctx context.Context, owner, name string) (Secret, error) {
	s, err := one[Secret](ctx, t.c, "SELECT "+secretColumns+" FROM secrets WHERE owner = $1 AND name = $2", owner, name)
	if err != nil {
		return Secret{}, fmt.Errorf("secret %q: %w", name, err)
	}
	return s, nil
}

// bare is a secret without its value.
type bare struct{ Secret }

func (b *bare) fields() []any {
	return []any{&b.Owner, &b.Name, &b.KeyID, &b.UpdatedBy, (*stamp)(&b.Updated)}
}

// List returns which secrets an owner has, by name, without what is in them: at most
// [MaxPage].
func (t Secrets) List(ctx context.Context, owner string) ([]Secret, error) {
	found, err := all[bare](ctx, t.c, "SELECT owner, name, key_id, updated_by, updated FROM secrets WHERE owner = $1 ORDER BY name LIMIT $2", owner, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("secrets of %q: %w", owner, err)
	}
	out := make([]Secret, len(found))
	for i, b := range found {
		out[i] = b.Secret
	}
	return out, nil
}

// NotSealedBy returns secrets that another key than this one sealed, at most limit and
// never more than [MaxPage]: what is sealed again when keys change.
func (t Secrets) NotSealedBy(ctx context.Context, keyID string, limit int) ([]Secret, error) {
	found, err := all[Secret](ctx, t.c, "SELECT "+secretColumns+" FROM secrets WHERE key_id <> $1 ORDER BY owner, name LIMIT $2", keyID, Page{Limit: limit}.limit())
	if err != nil {
		return nil, fmt.Errorf("secrets of other keys: %w", err)
	}
	return found, nil
}

// Reseal replaces the sealed form of a secret that nobody has changed since it was
// read, and else fails with [ErrConflict].
func (t Secrets) Reseal(ctx context.Context, read Secret, sealed []byte, keyID string) error {
	n, err := t.c.exec(ctx, "UPDATE secrets SET sealed = $3, key_id = $4 WHERE owner = $1 AND name = $2 AND sealed = $5", read.Owner, read.Name, sealed, keyID, read.Sealed)
	if err == nil && n == 0 {
		err = ErrConflict
	}
	if err != nil {
		return fmt.Errorf("seal secret %q again: %w", read.Name, err)
	}
	return nil
}

// Delete forgets a secret.
func (t Secrets) Delete(ctx context.Context, owner, name string) error {
	if err := t.c.mustChange(ctx, "DELETE FROM secrets WHERE owner = $1 AND name = $2", owner, name); err != nil {
		return fmt.Errorf("forget secret %q: %w", name, err)
	}
	return nil
}

// DeleteOf forgets all secrets of an owner, and returns how many.
func (t Secrets) DeleteOf(ctx context.Context, owner string) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM secrets WHERE owner = $1", owner)
	if err != nil {
		return 0, fmt.Errorf("forget the secrets of %q: %w", owner, err)
	}
	return n, nil
}
