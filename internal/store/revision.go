package store

import (
	"context"
	"fmt"
)

// Names of what has a revision: see [DB.Revisions].
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

// Revisions returns numbers that grow with every change of the skills, the kinds and
// the settings: what was read before one of them grew may be old. One that never
// changed is 0.
func (db *DB) Revisions(ctx context.Context) (map[string]int64, error) {
	found, err := all[revision](ctx, conn{db: db}, "SELECT name, value FROM revisions")
	if err != nil {
		return nil, fmt.Errorf("read what has changed: %w", err)
	}
	out := make(map[string]int64, len(found))
	for _, r := range found {
		out[r.Name] = r.Value
	}
	return out, nil
}

// bump raises a revision in a transaction, and returns it. Others that do the same
// wait for its end, so that no smaller number is seen after a bigger one.
func (c conn) bump(ctx context.Context, name string) (int64, error) {
	found, err := changed[value[int64]](ctx, c, `INSERT INTO revisions (name, value) VALUES ($1, 1)
		ON CONFLICT (name) DO UPDATE SET value = revisions.value + 1 RETURNING value`, name)
	if err != nil {
		return 0, err
	}
	return found[0].V, nil
}
