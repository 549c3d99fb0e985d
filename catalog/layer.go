package catalog

import (
	"cmp"
	"iter"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Layer is an immutable, indexed set of skills with the same origin and scope.
// Any number of catalogs can share a layer, because a snapshot refers to its
// layers instead of copying them. A Layer is safe for concurrent use.
type Layer struct {
	*layerIndex
	omitted map[string]bool // names that this layer does not have; may be nil
}

// layerIndex holds the data that all layers of a listing share.
type layerIndex struct {
	entries    []*Entry // sorted by directory
	byName     []*Entry // sorted by name, then in order of precedence
	lookalikes []*Entry // entries whose name may look like another one: see Snapshot.lookalikes
	preload    []*Entry // entries that a model may load, and that are marked preload
	names      int      // number of distinct names whose first skill a model may load
	hasIDs     bool     // whether entries have file IDs, so that skills of other layers may be the same files
	isFlat     bool     // see Snapshot.IsFlat
}

// NewLayer returns a layer of skills of one source with the same scope. Do not
// modify entries afterwards.
func NewLayer(entries []*Entry) *Layer {
	if !slices.IsSortedFunc(entries, byDir) {
		slices.SortStableFunc(entries, byDir)
	}
	x := &layerIndex{entries: entries, byName: slices.Clone(entries), isFlat: true}
	slices.SortStableFunc(x.byName, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	for i, e := range x.byName {
		first := i == 0 || x.byName[i-1].Name != e.Name
		if first && !e.DisableModelInvocation {
			x.names++
		}
		if untrusted.Skeleton(e.Name) != e.Name {
			x.lookalikes = append(x.lookalikes, e)
		}
		if e.Preload && !e.DisableModelInvocation {
			x.preload = append(x.preload, e)
		}
		x.hasIDs = x.hasIDs || e.id != (fileID{})
		x.isFlat = x.isFlat && first && e.Dir == e.Name && !strings.Contains(e.Dir, "/") && !strings.HasPrefix(e.Origin, "from.")
	}
	return &Layer{layerIndex: x}
}

// Without returns a layer without the skills with the given names. It shares
// the index with l.
func (l *Layer) Without(names ...string) *Layer {
	if len(names) == 0 {
		return l
	}
	out := &Layer{l.layerIndex, map[string]bool{}}
	for n := range l.omitted {
		out.omitted[n] = true
	}
	for _, n := range names {
		out.omitted[n] = true
	}
	return out
}

// All yields the skills of the layer in order of precedence.
func (l *Layer) All() iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		for _, e := range l.entries {
			if !l.omitted[e.Name] && !yield(e) {
				return
			}
		}
	}
}

// equal reports whether two layers have the same entries.
func (l *Layer) equal(other *Layer) bool {
	if len(l.omitted) != len(other.omitted) {
		return false
	}
	for n := range l.omitted {
		if !other.omitted[n] {
			return false
		}
	}
	return l.layerIndex == other.layerIndex || slices.Equal(l.entries, other.entries)
}

// withName returns the skills with the given name, in order of precedence.
func (l *Layer) withName(name string) []*Entry {
	if l.omitted[name] {
		return nil
	}
	i, _ := slices.BinarySearchFunc(l.byName, name, func(e *Entry, name string) int { return cmp.Compare(e.Name, name) })
	j := i
	for j < len(l.byName) && l.byName[j].Name == name {
		j++
	}
	return l.byName[i:j]
}

// layersOf groups the entries of a source by origin and scope. The entries must be
// sorted by directory. The layers are in the order of their first entries. Most
// sources have one layer.
func layersOf(entries []*Entry) []*Layer {
	if len(entries) == 0 {
		return nil
	}
	same := func(e *Entry) bool { return e.Scope == entries[0].Scope && e.Origin == entries[0].Origin }
	if i := slices.IndexFunc(entries, func(e *Entry) bool { return !same(e) }); i < 0 {
		return []*Layer{NewLayer(entries)}
	}
	var first, others []*Entry
	for _, e := range entries {
		if same(e) {
			first = append(first, e)
		} else {
			others = append(others, e)
		}
	}
	return append([]*Layer{NewLayer(first)}, layersOf(others)...)
}
