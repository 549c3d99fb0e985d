package tools

import (
	"encoding/json"
	"strings"
)

// Bounds of schemas that arguments are checked by.
const (
	maxSchema = 256 << 10 // bytes
	maxWork   = 20_000    // schemas, with what they refer to counted each time
)

// bounded reports whether checking by a schema ends soon: it is not large, and what
// it refers to leads neither back to itself nor to more and more. A server may be
// hostile, and a validator that recurses for ever ends this program.
func bounded(schema []byte) bool {
	var root any
	if len(schema) > maxSchema || json.Unmarshal(schema, &root) != nil {
		return false
	}
	w := &walk{root: root, work: map[string]int{}}
	return w.node(root, 0) <= maxWork
}

// walk counts the schemas that one leads to.
type walk struct {
	root any
	work map[string]int // by reference; -1 while it is counted
}

// node is the work of a value, beyond maxWork where it does not end.
func (w *walk) node(v any, depth int) int {
	const never = maxWork + 1
	if depth > 200 {
		return never
	}
	total := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if total += w.node(item, depth+1); total > maxWork {
				return never
			}
		}
	case map[string]any:
		for key, item := range v {
			switch key {
			case "$ref":
				ref, ok := item.(string)
				if !ok {
					continue
				}
				if total += w.reference(ref, depth); total > maxWork {
					return never
				}
			case "$dynamicRef", "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor":
				if _, text := item.(string); text {
					return never // where these lead is not worked out here
				}
				fallthrough
			default:
				if total += w.node(item, depth+1); total > maxWork {
					return never
				}
			}
		}
	}
	return total
}

func (w *walk) reference(ref string, depth int) int {
	const never = maxWork + 1
	if n, known := w.work[ref]; known {
		if n < 0 {
			return never // it leads back to itself
		}
		return n
	}
	target, ok := w.at(ref)
	if !ok {
		return never
	}
	w.work[ref] = -1
	n := w.node(target, depth+1)
	w.work[ref] = n
	return n
}

// at is what a pointer inside the schema names.
func (w *walk) at(ref string) (any, bool) {
	pointer, ok := strings.CutPrefix(ref, "#/")
	if !ok {
		return nil, false
	}
	v := w.root
	for part := range strings.SplitSeq(pointer, "/") {
		m, ok := v.(map[string]any)
		if !ok {
			return nil, false
		}
		if v, ok = m[strings.NewReplacer("~1", "/", "~0", "~").Replace(part)]; !ok {
			return nil, false
		}
	}
	return v, true
}
