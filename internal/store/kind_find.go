package store

import (
	"context"
	"fmt"
)

// Find returns the resources with the given kind and name in up to
// [MaxNamespaces] namespaces, in the order of the namespaces.
func (t Kinds) Find(ctx context.Context, kind, name string, in []Namespace) ([]Kind, error) {
	if err := checkNamespaces(in); err != nil {
		return nil, fmt.Errorf("find %s %q: %w", kind, name, err)
	}
	if len(in) == 0 {
		return nil, nil
	}
	rows, err := queryAll[Kind](ctx, t.c, "SELECT "+kindColumns+" FROM kinds WHERE kind = $1 AND name = $2 AND namespace IN ("+placeholders(3, len(in))+")",
		append([]any{kind, name}, toArgs(in)...)...)
	if err != nil {
		return nil, fmt.Errorf("find %s %q: %w", kind, name, err)
	}
	found := make(map[Namespace]Kind, len(rows))
	for _, k := range rows {
		found[k.Namespace] = k
	}
	var out []Kind
	for _, n := range in {
		if k, ok := found[n]; ok {
			out = append(out, k)
			delete(found, n) // the same namespace may be given twice
		}
	}
	return out, nil
}
