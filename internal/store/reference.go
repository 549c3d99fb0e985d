package store

import (
	"context"
	"fmt"
)

// SkillKind is the FromKind or ToKind that denotes a skill in a [Reference].
const SkillKind = "Skill"

// Reference is a reference from one item to another, either by id or by a name
// that is resolved on use. The target need not exist.
type Reference struct {
	FromKind string
	FromID   string
	Slot     string // field of the referring item, for example "skills"
	ToKind   string
	// ToNamespace is the namespace in which ToName is resolved. If it is "",
	// the name is resolved in all of the user's namespaces.
	ToNamespace Namespace
	ToName      string
	ToID        string // "" for a reference by name
	Digest      string // required digest; "" for any
}

const refColumns = "from_kind, from_id, slot, to_kind, to_namespace, to_name, to_id, digest"

func (r *Reference) fields() []any {
	return []any{&r.FromKind, &r.FromID, &r.Slot, &r.ToKind, (*string)(&r.ToNamespace), &r.ToName, &r.ToID, &r.Digest}
}

// MaxRefs is the maximum number of references per item.
const MaxRefs = 1000

// Refs stores the references between items.
type Refs struct{ c conn }

// Set replaces all references of an item and preserves their order.
func (t Refs) Set(ctx context.Context, fromKind, fromID string, refs []Reference) error {
	if len(refs) > MaxRefs {
		return fmt.Errorf("set references of %s %q: %w: %d references, limit %d", fromKind, fromID, ErrInvalid, len(refs), MaxRefs)
	}
	err := t.c.inTransaction(ctx, func(c conn) error {
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
		return fmt.Errorf("set references of %s %q: %w", fromKind, fromID, err)
	}
	return nil
}

// ListFrom returns an item's references in the order in which they were set.
func (t Refs) ListFrom(ctx context.Context, fromKind, fromID string) ([]Reference, error) {
	found, err := queryAll[Reference](ctx, t.c, "SELECT "+refColumns+" FROM refs WHERE from_kind = $1 AND from_id = $2 ORDER BY position", fromKind, fromID)
	if err != nil {
		return nil, fmt.Errorf("list references of %s %q: %w", fromKind, fromID, err)
	}
	return found, nil
}

// ListTo returns the references to an item by its id or its name. A reference
// by name may resolve to another item with the same name. ListTo returns up to
// limit references, but no more than [MaxPage].
func (t Refs) ListTo(ctx context.Context, kind, id, name string, limit int) ([]Reference, error) {
	found, err := queryAll[Reference](ctx, t.c, "SELECT "+refColumns+` FROM refs WHERE to_kind = $1 AND to_id = $2
		UNION ALL SELECT `+refColumns+` FROM refs WHERE to_kind = $1 AND to_name = $3 AND to_id = ''
		ORDER BY from_kind, from_id, slot LIMIT $4`, kind, id, name, Page{Limit: limit}.Size())
	if err != nil {
		return nil, fmt.Errorf("list references to %s %q: %w", kind, name, err)
	}
	return found, nil
}

// Remove deletes the references from one item to another, by id or by name, and
// returns their number. The caller must update the referring item in the same
// transaction.
func (t Refs) Remove(ctx context.Context, fromKind, fromID, toKind, toID, toName string) (int64, error) {
	n, err := t.c.exec(ctx, `DELETE FROM refs WHERE from_kind = $1 AND from_id = $2 AND to_kind = $3
		AND (to_id <> '' AND to_id = $4 OR to_id = '' AND to_name = $5)`, fromKind, fromID, toKind, toID, toName)
	if err != nil {
		return 0, fmt.Errorf("remove references of %s %q: %w", fromKind, fromID, err)
	}
	return n, nil
}
