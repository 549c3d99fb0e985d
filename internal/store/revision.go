package store

import (
	"context"
	"fmt"
	"strings"
)

// Names of the counters that [DB.Revisions] returns.
const (
	SkillsRevision   = "skills"
	KindsRevision    = "kinds"
	SettingsRevision = "settings"
	// SecretsRevision counts changes to secrets, sign-ins and grants, except those of
	// one session.
	SecretsRevision = "secrets"
	// PlatformRevision counts changes to secrets and grants whose names begin with
	// [PlatformPrefix], except those of one session.
	PlatformRevision = "platform"
)

// PlatformPrefix is the prefix of the names of secrets that hold platform values.
const PlatformPrefix = "variable."

// revision is a named counter.
type revision struct {
	Name  string
	Value int64
}

func (r *revision) fields() []any { return []any{&r.Name, &r.Value} }

// Revisions returns counters that grow with each change to a skill, a resource,
// a setting or a secret. Data read before its counter grew may be outdated. A counter
// starts at 0.
func (db *DB) Revisions(ctx context.Context) (map[string]int64, error) {
	found, err := queryAll[revision](ctx, conn{db: db}, "SELECT name, value FROM revisions")
	if err != nil {
		return nil, fmt.Errorf("read revisions: %w", err)
	}
	out := make(map[string]int64, len(found))
	for _, r := range found {
		out[r.Name] = r.Value
	}
	return out, nil
}

// changeSecrets calls f in a transaction and increments [SecretsRevision] if f
// changed rows. It returns the number of changed rows.
func (c conn) changeSecrets(ctx context.Context, f func(conn) (int64, error)) (changed int64, err error) {
	err = c.inTransaction(ctx, func(c conn) (err error) {
		if changed, err = f(c); err == nil && changed > 0 {
			_, err = c.incrementRevision(ctx, SecretsRevision)
		}
		return err
	})
	return changed, err
}

// changeSecret is like changeSecrets for the secret or grant with the given name.
// It also increments [PlatformRevision] if the name is that of a platform value.
func (c conn) changeSecret(ctx context.Context, name string, f func(conn) (int64, error)) (changed int64, err error) {
	return c.changeSecrets(ctx, func(c conn) (int64, error) {
		changed, err := f(c)
		if err == nil && changed > 0 && strings.HasPrefix(name, PlatformPrefix) {
			_, err = c.incrementRevision(ctx, PlatformRevision)
		}
		return changed, err
	})
}

// execSecrets executes a statement in changeSecrets.
func (c conn) execSecrets(ctx context.Context, query string, args ...any) (int64, error) {
	return c.changeSecrets(ctx, func(c conn) (int64, error) { return c.exec(ctx, query, args...) })
}

// incrementRevision increments a revision and returns the new value. The caller
// must be in a transaction. Transactions that increment the same revision wait
// for each other, so readers never see a counter decrease.
func (c conn) incrementRevision(ctx context.Context, name string) (int64, error) {
	found, err := execReturning[scalarRow[int64]](ctx, c, `INSERT INTO revisions (name, value) VALUES ($1, 1)
		ON CONFLICT (name) DO UPDATE SET value = revisions.value + 1 RETURNING value`, name)
	if err != nil {
		return 0, err
	}
	return found[0].V, nil
}
