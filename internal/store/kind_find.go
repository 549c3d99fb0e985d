package store

import (
	"context"
	"fmt"
)

// Find returns the resources of a kind with a name in namespaces, in the order in
// which these are given: the first is the nearest. There are at most [MaxNamespaces]
// of them.
func (t Kinds) Find(ctx context.Context, kind, name string, in []Namespace) ([]Kind, error) {
	if err := checkNamespaces(in); err != nil {
		return nil, fmt.Errorf("find %s %q: %w", kind, name, err)
	}
	if len(in) == 0 {
		return nil, nil
	}
	rows, err := all[Kind](ctx, t.c, "SELECT "+kindColumns+" FROM kinds WHERE kind = $1 AND name = $2 AND namespace IN ("+places(3, len(in))+")",
		append([]any{kind, name}, anys(in)...)...)
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
			delete(found, n) // of one that is given twice
		}
	}
	return out, nil
}
