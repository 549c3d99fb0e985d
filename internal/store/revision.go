package store

import (
	"context"
	"fmt"
)

// Names of the counters that [DB.Revisions] returns.
const (
	SkillsRevision   = "skills"
	KindsRevision    = "kinds"
	SettingsRevision = "settings"
)

// revision is a named counter.
type revision struct {
	Name  string
	Value int64
}

func (r *revision) fields() []any { return []any{&r.Name, &r.Value} }

// Revisions returns counters that grow with each change to a skill, a resource
// or a setting. Data read before its counter grew may be outdated. A counter
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
