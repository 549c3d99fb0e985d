package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
)

// Setting is something that an operator or an owner has set.
type Setting struct {
	Scope      string // "hub", or a namespace
	Name       string
	Value      json.RawMessage
	Generation int64 // 1 when it is set first; every change adds 1
	UpdatedBy  string
	Updated    time.Time
}

const settingColumns = "scope, name, value, generation, updated_by, updated"

func (s *Setting) fields() []any {
	return []any{&s.Scope, &s.Name, (*document)(&s.Value), &s.Generation, &s.UpdatedBy, (*stamp)(&s.Updated)}
}

// Settings keeps what is set.
type Settings struct{ c conn }

// Set keeps a value where the setting is still of the generation that it was read as,
// 0 where it was not set, and else fails with [ErrConflict]. It returns the new
// generation.
func (t Settings) Set(ctx context.Context, s Setting) (int64, error) {
	read := s.Generation
	s.Generation, s.Updated = read+1, now()
	err := t.c.atomic(ctx, func(c conn) error {
		if err := c.set(ctx, read, s); err != nil {
			return err
		}
		_, err := c.bump(ctx, SettingsRevision)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("set %q: %w", s.Name, err)
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
		s.Scope, s.Name, document(s.Value), s.Generation, s.UpdatedBy, stamp(s.Updated), read)
	if err == nil && n == 0 {
		err = ErrConflict
	}
	return err
}

// Get returns a setting.
func (t Settings) Get(ctx context.Context, scope, name string) (Setting, error) {
	s, err := one[Setting](ctx, t.c, "SELECT "+settingColumns+" FROM settings WHERE scope = $1 AND name = $2", scope, name)
	if err != nil {
		return Setting{}, fmt.Errorf("setting %q: %w", name, err)
	}
	return s, nil
}

// List returns all that is set in scopes, at most [MaxNamespaces] of them, by scope and
// name.
func (t Settings) List(ctx context.Context, scopes ...string) ([]Setting, error) {
	if len(scopes) > MaxNamespaces {
		return nil, fmt.Errorf("settings: %w: %d scopes, more than %d", ErrInvalid, len(scopes), MaxNamespaces)
	}
	if len(scopes) == 0 {
		return nil, nil
	}
	found, err := all[Setting](ctx, t.c, "SELECT "+settingColumns+" FROM settings WHERE scope IN ("+places(1, len(scopes))+") ORDER BY scope, name", anys(scopes)...)
	if err != nil {
		return nil, fmt.Errorf("settings: %w", err)
	}
	return found, nil
}

// Unset removes a setting.
func (t Settings) Unset(ctx context.Context, scope, name string) error {
	err := t.c.atomic(ctx, func(c conn) error {
		if err := c.mustChange(ctx, "DELETE FROM settings WHERE scope = $1 AND name = $2", scope, name); err != nil {
			return err
		}
		_, err := c.bump(ctx, SettingsRevision)
		return err
	})
	if err != nil {
		return fmt.Errorf("unset %q: %w", name, err)
	}
	return nil
}
