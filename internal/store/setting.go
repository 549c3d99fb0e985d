package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Setting is a configuration value for the hub or a namespace.
type Setting struct {
	Scope      string // "hub" or a namespace
	Name       string
	Value      json.RawMessage
	Generation int64 // 1 when first set; incremented by each change
	UpdatedBy  string
	Updated    time.Time
}

const settingColumns = "scope, name, value, generation, updated_by, updated"

func (s *Setting) fields() []any {
	return []any{&s.Scope, &s.Name, (*jsonText)(&s.Value), &s.Generation, &s.UpdatedBy, (*timestamp)(&s.Updated)}
}

// Settings stores the settings of the hub and of namespaces.
type Settings struct{ c conn }

// Set stores a setting and returns its new generation. It fails with
// [ErrConflict] if the stored generation differs from the one in s. The
// generation of an unset setting is 0.
func (t Settings) Set(ctx context.Context, s Setting) (int64, error) {
	read := s.Generation
	s.Generation, s.Updated = read+1, now()
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.set(ctx, read, s); err != nil {
			return err
		}
		_, err := c.incrementRevision(ctx, SettingsRevision)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("change setting %q: %w", s.Name, err)
	}
	return s.Generation, nil
}

func (c conn) set(ctx context.Context, read int64, s Setting) error {
	if read == 0 {
		err := c.insert(ctx, "settings", settingColumns, s.fields())
		if errors.Is(err, ErrExists) {
			err = ErrConflict
		}
		return err
	}
	n, err := c.exec(ctx, "UPDATE settings SET value = $3, generation = $4, updated_by = $5, updated = $6 WHERE scope = $1 AND name = $2 AND generation = $7",
		s.Scope, s.Name, jsonText(s.Value), s.Generation, s.UpdatedBy, timestamp(s.Updated), read)
	if err == nil && n == 0 {
		err = ErrConflict
	}
	return err
}

// Get returns a setting. It fails with [ErrNotFound] if the setting is not set.
func (t Settings) Get(ctx context.Context, scope, name string) (Setting, error) {
	s, err := queryOne[Setting](ctx, t.c, "SELECT "+settingColumns+" FROM settings WHERE scope = $1 AND name = $2", scope, name)
	if err != nil {
		return Setting{}, fmt.Errorf("get setting %q: %w", name, err)
	}
	return s, nil
}

// List returns the settings of up to [MaxNamespaces] scopes, sorted by scope
// and name.
func (t Settings) List(ctx context.Context, scopes ...string) ([]Setting, error) {
	if len(scopes) > MaxNamespaces {
		return nil, fmt.Errorf("list settings: %w: %d scopes, limit %d", ErrInvalid, len(scopes), MaxNamespaces)
	}
	if len(scopes) == 0 {
		return nil, nil
	}
	found, err := queryAll[Setting](ctx, t.c, "SELECT "+settingColumns+" FROM settings WHERE scope IN ("+placeholders(1, len(scopes))+") ORDER BY scope, name", toArgs(scopes)...)
	if err != nil {
		return nil, fmt.Errorf("list settings: %w", err)
	}
	return found, nil
}

// Unset deletes a setting. It fails with [ErrNotFound] if the setting is not
// set.
func (t Settings) Unset(ctx context.Context, scope, name string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.execAffecting(ctx, "DELETE FROM settings WHERE scope = $1 AND name = $2", scope, name); err != nil {
			return err
		}
		_, err := c.incrementRevision(ctx, SettingsRevision)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete setting %q: %w", name, err)
	}
	return nil
}
