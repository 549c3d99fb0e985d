package store

import (
	"context"
	"fmt"
)

// Names of the revisions that [DB.Revisions] returns.
const (
	SkillsRevision   = "skills"
	KindsRevision    = "kinds"
	SettingsRevision = "settings"
)

type revision struct {
	Name  string
	Value int64
}

func (r *revision) fields() []any { return []any{&r.Name, &r.Value} }

// Revisions returns counters that grow with each change of the skills, the
// kinds and the settings. Data read before a counter grew may be outdated. A
// counter starts at 0.
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

// bump increments a revision in a transaction and returns it. Concurrent
// transactions wait for each other, so readers never see a counter decrease.
func (c conn) bump(ctx context.Context, name string) (int64, error) {
	found, err := execReturning[scalarRow[int64]](ctx, c, `INSERT INTO revisions (name, value) VALUES ($1, 1)
		ON CONFLICT (name) DO UPDATE SET value = revisions.value + 1 RETURNING value`, name)
	if err != nil {
		return 0, err
	}
	return found[0].V, nil
}
