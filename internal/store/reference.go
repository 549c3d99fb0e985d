package store

import (
	"context"
	"fmt"
)

// SkillKind is the kind of skills in references.
const SkillKind = "Skill"

// Reference is one thing that names another: by its id, or by a name that is
// resolved when it is used. It is kept as it was asked for, whether or not what it
// names is there.
type Reference struct {
	FromKind string
	FromID   string
	Slot     string // where in the one that refers, as "skills"
	ToKind   string
	// ToNamespace is where ToName is looked for; "" is wherever the one who uses it
	// looks.
	ToNamespace Namespace
	ToName      string
	ToID        string // "" is by name
	Digest      string // that it had to have; "" is any
}

const refColumns = "from_kind, from_id, slot, to_kind, to_namespace, to_name, to_id, digest"

func (r *Reference) fields() []any {
	return []any{&r.FromKind, &r.FromID, &r.Slot, &r.ToKind, (*string)(&r.ToNamespace), &r.ToName, &r.ToID, &r.Digest}
}

// MaxRefs bounds the references of one thing.
const MaxRefs = 1000

// Refs keeps what refers to what.
type Refs struct{ c conn }

// Set replaces all that a thing refers to, in their order.
func (t Refs) Set(ctx context.Context, fromKind, fromID string, refs []Reference) error {
	if len(refs) > MaxRefs {
		return fmt.Errorf("references of %s %q: %w: %d, more than %d", fromKind, fromID, ErrInvalid, len(refs), MaxRefs)
	}
	err := t.c.atomic(ctx, func(c conn) error {
		if _, err := c.exec(ctx, "DELETE FROM refs WHERE from_kind = $1 AND from_id = $2", fromKind, fromID); err != nil {
			return err
		}
		for i, r := range refs {
			r.FromKind, r.FromID = fromKind, fromID
			if err := c.insert(ctx, "refs", refColumns+", position", append(r.fields(), i)); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("references of %s %q: %w", fromKind, fromID, err)
	}
	return nil
}

// From returns what a thing refers to, in the order in which it was set.
func (t Refs) From(ctx context.Context, fromKind, fromID string) ([]Reference, error) {
	found, err := all[Reference](ctx, t.c, "SELECT "+refColumns+" FROM refs WHERE from_kind = $1 AND from_id = $2 ORDER BY position", fromKind, fromID)
	if err != nil {
		return nil, fmt.Errorf("references of %s %q: %w", fromKind, fromID, err)
	}
	return found, nil
}

// To returns what refers to a thing: those that name its id, and those that name its
// name alone, of which some may mean another thing of that name; at most limit, and
// never more than [MaxPage].
func (t Refs) To(ctx context.Context, kind, id, name string, limit int) ([]Reference, error) {
	found, err := all[Reference](ctx, t.c, "SELECT "+refColumns+` FROM refs WHERE to_kind = $1 AND to_id = $2
		UNION ALL SELECT `+refColumns+` FROM refs WHERE to_kind = $1 AND to_name = $3 AND to_id = ''
		ORDER BY from_kind, from_id, slot LIMIT $4`, kind, id, name, Page{Limit: limit}.limit())
	if err != nil {
		return nil, fmt.Errorf("what refers to %s %q: %w", kind, name, err)
	}
	return found, nil
}

// Remove takes the references of one thing to another away, by id or by name, and
// returns how many there were. What the thing itself says of it, the caller changes in
// the same transaction.
func (t Refs) Remove(ctx context.Context, fromKind, fromID, toKind, toID, toName string) (int64, error) {
	n, err := t.c.exec(ctx, `DELETE FROM refs WHERE from_kind = $1 AND from_id = $2 AND to_kind = $3
		AND (to_id <> '' AND to_id = $4 OR to_id = '' AND to_name = $5)`, fromKind, fromID, toKind, toID, toName)
	if err != nil {
		return 0, fmt.Errorf("remove references of %s %q: %w", fromKind, fromID, err)
	}
	return n, nil
}
