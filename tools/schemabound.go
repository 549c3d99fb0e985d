package tools

import (
	"encoding/json"
	"strings"
)

// Limits on schemas used to validate arguments.
const (
	maxSchema = 256 << 10 // bytes
	maxWork   = 20_000    // number of schemas; referenced schemas count for each reference
)

// isBounded reports whether validation with a schema takes bounded time: the
// schema is small, and its references are not cyclic and do not expand too far.
// Otherwise a hostile server could exhaust this program.
func isBounded(schema []byte) bool {
	var root any
	if len(schema) > maxSchema || json.Unmarshal(schema, &root) != nil {
		return false
	}
	w := &schemaCost{root: root, work: map[string]int{}}
	return w.count(root, 0) <= maxWork
}

// schemaCost counts the schemas that a validation can reach.
type schemaCost struct {
	root any
	work map[string]int // cost by reference; -1 while being counted
}

// count returns the cost of validating with v, or more than maxWork if it is
// unbounded.
func (w *schemaCost) count(v any, depth int) int {
	const never = maxWork + 1
	if depth > 200 {
		return never
	}
	total := 1
	switch v := v.(type) {
	case []any:
		for _, item := range v {
			if total += w.count(item, depth+1); total > maxWork {
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
				if total += w.countReference(ref, depth); total > maxWork {
					return never
				}
			case "$dynamicRef", "$recursiveRef", "$id", "id", "$anchor", "$dynamicAnchor":
				if _, text := item.(string); text {
					return never // these references are not supported
				}
				fallthrough
			default:
				if total += w.count(item, depth+1); total > maxWork {
					return never
				}
			}
		}
	}
	return total
}

func (w *schemaCost) countReference(ref string, depth int) int {
	const never = maxWork + 1
	if n, known := w.work[ref]; known {
		if n < 0 {
			return never // cyclic
		}
		return n
	}
	target, ok := w.resolve(ref)
	if !ok {
		return never
	}
	w.work[ref] = -1
	n := w.count(target, depth+1)
	w.work[ref] = n
	return n
}

// resolve returns the value that a JSON pointer in the schema refers to.
func (w *schemaCost) resolve(ref string) (any, bool) {
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
