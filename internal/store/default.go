package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Default is a skill that the people of a namespace have without asking.
type Default struct {
	Namespace  Namespace // of a user, a group, or of everybody
	SkillID    string
	Preload    bool            // whether it is loaded from the start
	Exceptions json.RawMessage // where it is not
	CreatedBy  string
	Created    time.Time // set by Put where it is zero
}

const defaultColumns = "namespace, skill_id, preload, exceptions, created_by, created"

func (d *Default) fields() []any {
	return []any{(*string)(&d.Namespace), &d.SkillID, &d.Preload, (*document)(&d.Exceptions), &d.CreatedBy, (*stamp)(&d.Created)}
}

// Defaults keeps which skills people have without asking.
type Defaults struct{ c conn }

// Put keeps a default in place of that of its namespace and skill. A skill that is not
// there, or a namespace, is [ErrNotFound].
func (t Defaults) Put(ctx context.Context, d Default) error {
	orNow(&d.Created)
	err := t.c.atomic(ctx, func(c conn) error {
		if err := c.mustExist(ctx, d.Namespace); err != nil {
			return err
		}
		_, err := c.exec(ctx, "INSERT INTO defaults ("+defaultColumns+`) VALUES ($1, $2, $3, $4, $5, $6)
			ON CONFLICT (namespace, skill_id) DO UPDATE SET preload = excluded.preload, exceptions = excluded.exceptions`, d.fields()...)
		return parentless(err)
	})
	if err != nil {
		return fmt.Errorf("make skill %q a default: %w", d.SkillID, err)
	}
	return nil
}

// In returns the defaults of namespaces, at most [MaxNamespaces], by namespace and the
// id of the skill.
func (t Defaults) In(ctx context.Context, in []Namespace) ([]Default, error) {
	if err := checkNamespaces(in); err != nil || len(in) == 0 {
		return nil, err
	}
	found, err := all[Default](ctx, t.c, "SELECT "+defaultColumns+" FROM defaults WHERE namespace IN ("+places(1, len(in))+") ORDER BY namespace, skill_id", anys(in)...)
	if err != nil {
		return nil, fmt.Errorf("defaults: %w", err)
	}
	return found, nil
}

// Of returns the namespaces of which a skill is a default: at most [MaxPage].
func (t Defaults) Of(ctx context.Context, skillID string) ([]Default, error) {
	found, err := all[Default](ctx, t.c, "SELECT "+defaultColumns+" FROM defaults WHERE skill_id = $1 ORDER BY namespace LIMIT $2", skillID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("defaults of skill %q: %w", skillID, err)
	}
	return found, nil
}

// Delete takes a skill out of the defaults of a namespace.
func (t Defaults) Delete(ctx context.Context, in Namespace, skillID string) error {
	if err := t.c.mustChange(ctx, "DELETE FROM defaults WHERE namespace = $1 AND skill_id = $2", string(in), skillID); err != nil {
		return fmt.Errorf("take skill %q out of the defaults: %w", skillID, err)
	}
	return nil
}
