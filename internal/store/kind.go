package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Kind is a resource other than a skill, for example a Ghost, a Bot or a Model.
type Kind struct {
	ID         string // set by Create if ""
	Kind       string
	Namespace  Namespace
	Name       string // unique within its kind and namespace
	Spec       json.RawMessage
	Generation int64 // 1 at creation; incremented by each change
	CreatedBy  string
	Created    time.Time // set by Create if zero
	Updated    time.Time
}

const kindColumns = "id, kind, namespace, name, spec, generation, created_by, created, updated"

func (k *Kind) fields() []any {
	return []any{&k.ID, &k.Kind, (*string)(&k.Namespace), &k.Name, (*jsonText)(&k.Spec), &k.Generation, &k.CreatedBy, (*timestamp)(&k.Created), (*timestamp)(&k.Updated)}
}

// Kinds stores resources other than skills.
type Kinds struct{ c conn }

// Create adds a resource and returns it as stored. It fails with [ErrExists] if
// the name is taken, and with [ErrNotFound] if the user or group of the
// namespace does not exist.
func (t Kinds) Create(ctx context.Context, k Kind) (Kind, error) {
	setDefaultID(&k.ID)
	setDefaultTime(&k.Created)
	k.Updated, k.Generation = k.Created, 1
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.checkNamespaceOwner(ctx, k.Namespace); err != nil {
			return err
		}
		if err := c.insert(ctx, "kinds", kindColumns, k.fields()); err != nil {
			return err
		}
		_, err := c.incrementRevision(ctx, KindsRevision)
		return err
	})
	if err != nil {
		return Kind{}, fmt.Errorf("add %s %q: %w", k.Kind, k.Name, err)
	}
	return k, nil
}

// Update replaces a resource's spec and returns the new generation. It fails
// with [ErrConflict] if the resource no longer has the given generation.
func (t Kinds) Update(ctx context.Context, id string, generation int64, spec json.RawMessage) (int64, error) {
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := c.exec(ctx, "UPDATE kinds SET spec = $3, generation = generation + 1, updated = $4 WHERE id = $1 AND generation = $2",
			id, generation, jsonText(spec), timestamp(now()))
		if err != nil {
			return err
		}
		if n == 0 {
			return c.generationConflict(ctx, "kinds", id)
		}
		_, err = c.incrementRevision(ctx, KindsRevision)
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("change resource %q: %w", id, err)
	}
	return generation + 1, nil
}

// generationConflict returns an [ErrConflict] with the row's current
// generation, or [ErrNotFound] if the row does not exist.
func (c conn) generationConflict(ctx context.Context, table, id string) error {
	is, err := queryScalar[int64](ctx, c, "SELECT generation FROM "+table+" WHERE id = $1", id)
	if err != nil {
		return err
	}
	return fmt.Errorf("%w: current generation is %d", ErrConflict, is)
}

// Get returns the resource with the given id.
func (t Kinds) Get(ctx context.Context, id string) (Kind, error) {
	k, err := queryOne[Kind](ctx, t.c, "SELECT "+kindColumns+" FROM kinds WHERE id = $1", id)
	if err != nil {
		return Kind{}, fmt.Errorf("get resource %q: %w", id, err)
	}
	return k, nil
}

// ByName returns the resource with the given kind, namespace and name.
func (t Kinds) ByName(ctx context.Context, kind string, in Namespace, name string) (Kind, error) {
	k, err := queryOne[Kind](ctx, t.c, "SELECT "+kindColumns+" FROM kinds WHERE kind = $1 AND namespace = $2 AND name = $3", kind, string(in), name)
	if err != nil {
		return Kind{}, fmt.Errorf("get %s %q: %w", kind, name, err)
	}
	return k, nil
}

// List returns the resources of a kind in up to [MaxNamespaces] namespaces,
// sorted by name, and the cursor of the next page.
func (t Kinds) List(ctx context.Context, kind string, in []Namespace, p Page) ([]Kind, string, error) {
	found, next, err := t.list(ctx, kind, in, p)
	if err != nil {
		return nil, "", fmt.Errorf("list %s: %w", kind, err)
	}
	return found, next, nil
}

func (t Kinds) list(ctx context.Context, kind string, in []Namespace, p Page) ([]Kind, string, error) {
	keys, err := p.decodeCursor(2)
	if err == nil {
		err = checkNamespaces(in)
	}
	if err != nil || len(in) == 0 {
		return nil, "", err
	}
	found, err := queryAll[Kind](ctx, t.c, "SELECT "+kindColumns+` FROM kinds WHERE kind = $1 AND (name, id) > ($2, $3)
		AND namespace IN (`+placeholders(5, len(in))+") ORDER BY name, id LIMIT $4",
		append([]any{kind, keys[0], keys[1], p.Size() + 1}, toArgs(in)...)...)
	if err != nil {
		return nil, "", err
	}
	found, next := cutPage(p, found, func(k Kind) []string { return []string{k.Name, k.ID} })
	return found, next, nil
}

// Delete deletes a resource and its references to other items. The caller must
// check in the same transaction that no item refers to it; see [Refs.ListTo].
func (t Kinds) Delete(ctx context.Context, id string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		kind, err := queryScalar[string](ctx, c, "SELECT kind FROM kinds WHERE id = $1", id)
		if err != nil {
			return err
		}
		if _, err := c.exec(ctx, "DELETE FROM refs WHERE from_kind = $1 AND from_id = $2", kind, id); err != nil {
			return err
		}
		if err := c.execAffecting(ctx, "DELETE FROM kinds WHERE id = $1", id); err != nil {
			return err
		}
		_, err = c.incrementRevision(ctx, KindsRevision)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete resource %q: %w", id, err)
	}
	return nil
}
