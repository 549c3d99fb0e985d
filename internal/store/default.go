package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Default is a skill that is enabled by default in a namespace's conversations.
type Default struct {
	Namespace  Namespace // a user, a group, or public
	SkillID    string
	Preload    bool            // whether to load the skill when a conversation starts
	Exceptions json.RawMessage // conversations that omit the skill
	CreatedBy  string
	Created    time.Time // set by Put if zero
}

const defaultColumns = "namespace, skill_id, preload, exceptions, created_by, created"

func (d *Default) fields() []any {
	return []any{(*string)(&d.Namespace), &d.SkillID, &d.Preload, (*jsonText)(&d.Exceptions), &d.CreatedBy, (*timestamp)(&d.Created)}
}

// Defaults stores each namespace's default skills.
type Defaults struct{ c conn }

// Put stores a default, replacing any default for the same namespace and skill.
// It fails with [ErrNotFound] if the skill or the namespace does not exist.
func (t Defaults) Put(ctx context.Context, d Default) error {
	setDefaultTime(&d.Created)
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.checkNamespaceOwner(ctx, d.Namespace); err != nil {
			return err
		}
		_, err := c.exec(ctx, "INSERT INTO defaults ("+defaultColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (namespace, skill_id) DO UPDATE SET preload = excluded.preload, exceptions = excluded.exceptions`, d.fields()...)
		return toNotFound(err)
	})
	if err != nil {
		return fmt.Errorf("make skill %q a default: %w", d.SkillID, err)
	}
	return nil
}

// List returns the defaults of up to [MaxNamespaces] namespaces, sorted by
// namespace and skill id.
func (t Defaults) List(ctx context.Context, in []Namespace) ([]Default, error) {
	if err := checkNamespaces(in); err != nil || len(in) == 0 {
		return nil, err
	}
	found, err := queryAll[Default](ctx, t.c, "SELECT "+defaultColumns+" FROM defaults WHERE namespace IN ("+placeholders(1, len(in))+") ORDER BY namespace, skill_id", toArgs(in)...)
	if err != nil {
		return nil, fmt.Errorf("list defaults: %w", err)
	}
	return found, nil
}

// ListBySkill returns up to [MaxPage] defaults that refer to a skill.
func (t Defaults) ListBySkill(ctx context.Context, skillID string) ([]Default, error) {
	found, err := queryAll[Default](ctx, t.c, "SELECT "+defaultColumns+" FROM defaults WHERE skill_id = $1 ORDER BY namespace LIMIT $2", skillID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list defaults of skill %q: %w", skillID, err)
	}
	return found, nil
}

// Delete removes a skill from a namespace's defaults.
func (t Defaults) Delete(ctx context.Context, in Namespace, skillID string) error {
	if err := t.c.execAffecting(ctx, "DELETE FROM defaults WHERE namespace = $1 AND skill_id = $2", string(in), skillID); err != nil {
		return fmt.Errorf("remove skill %q from the defaults: %w", skillID, err)
	}
	return nil
}
