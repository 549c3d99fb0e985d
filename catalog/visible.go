package catalog

import (
	"iter"
	"maps"
	"slices"
	"strings"
)

// Visible yields the skills of [Snapshot.Skills] without creating a slice.
func (s *Snapshot) Visible() iter.Seq[*Entry] {
	if s.Disabled {
		return func(func(*Entry) bool) {}
	}
	if s.filter.chosen != nil {
		return s.chosen
	}
	return func(yield func(*Entry) bool) { s.merge(s.layers, yield) }
}

// chosen yields the visible skills if the filter lists names. It looks up each
// name instead of visiting every skill, because the list may be short and the
// catalog large.
func (s *Snapshot) chosen(yield func(*Entry) bool) {
	names := make([]string, 0, len(s.filter.chosen))
	for name := range s.filter.chosen {
		names = append(names, name)
		if _, rest, ok := cutName(name); ok {
			names = append(names, rest)
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		if e := s.ByName(name); e != nil && !yield(e) {
			return
		}
	}
}

// merge yields the first visible skill of each name in the layers, sorted by
// name. It returns false if yield returned false.
func (s *Snapshot) merge(layers []*Layer, yield func(*Entry) bool) bool {
	rest := make([][]*Entry, len(layers)) // skills that were not considered, by layer
	for i, l := range layers {
		rest[i] = l.byName
	}
	for {
		// The layer with the lowest name yields its skills up to the lowest name
		// of the others.
		best, bound, bounded := -1, "", false
		for i, r := range rest {
			switch {
			case len(r) == 0:
			case best < 0:
				best = i
			case r[0].Name < rest[best][0].Name:
				best, bound, bounded = i, rest[best][0].Name, true
			case !bounded || r[0].Name < bound:
				bound, bounded = r[0].Name, true
			}
		}
		if best < 0 {
			return true
		}
		if name := rest[best][0].Name; bounded && name == bound {
			var e *Entry
			for i := range rest {
				if len(rest[i]) > 0 && rest[i][0].Name == name {
					e = s.next(layers[i], &rest[i], e)
				}
			}
			if e != nil && !yield(e) {
				return false
			}
			continue
		}
		for len(rest[best]) > 0 && (!bounded || rest[best][0].Name < bound) {
			if e := s.next(layers[best], &rest[best], nil); e != nil && !yield(e) {
				return false
			}
		}
	}
}

// next removes all skills with the same name as the first one from rest. It
// returns e or, if e is nil, the first visible skill that it removed.
func (s *Snapshot) next(l *Layer, rest *[]*Entry, e *Entry) *Entry {
	name := (*rest)[0].Name
	omitted := l.omitted[name]
	for len(*rest) > 0 && (*rest)[0].Name == name {
		if c := (*rest)[0]; e == nil && !omitted && !s.isTwin[c] && s.hidden(c) == "" {
			e = c
		}
		*rest = (*rest)[1:]
	}
	return e
}

// forModelByScope yields the skills of [Snapshot.ForModel], the highest scope
// first, and sorted by name within a scope.
func (s *Snapshot) forModelByScope(yield func(*Entry) bool) {
	for i := 0; i < len(s.layers); {
		j := i + 1
		for j < len(s.layers) && s.layers[j].entries[0].Scope == s.layers[i].entries[0].Scope {
			j++
		}
		ok := s.merge(s.layers[i:j], func(e *Entry) bool {
			return e.DisableModelInvocation || i > 0 && s.ByName(e.Name) != e || yield(e)
		})
		if !ok {
			return
		}
		i = j
	}
}

// Count returns the number of skills of [Snapshot.ForModel]. For a filter that
// hides nothing, its cost depends only on the smaller layers.
func (s *Snapshot) Count() int {
	s.countOnce.Do(func() {
		if s.Disabled {
			return
		}
		if s.filter.selects() || s.isTwin != nil || s.pending != nil {
			for e := range s.Visible() {
				if !e.DisableModelInvocation {
					s.count++
				}
			}
			return
		}
		s.count = s.countNames()
	})
	return s.count
}

// countNames implements [Snapshot.Count] for a snapshot without hidden skills.
func (s *Snapshot) countNames() int {
	if len(s.layers) == 0 {
		return 0
	}
	largest := slices.MaxFunc(s.layers, func(a, b *Layer) int { return len(a.entries) - len(b.entries) })
	seen, n := map[string]bool{}, 0 // names in the other layers so far
	above := true                   // whether the largest layer comes later
	for _, l := range s.layers {
		if l == largest {
			above = false
			n += l.names
			without := maps.Clone(seen)
			maps.Copy(without, l.omitted)
			for name := range without {
				if found := (&Layer{layerIndex: l.layerIndex}).withName(name); len(found) > 0 && !found[0].DisableModelInvocation {
					n--
				}
			}
			continue
		}
		for _, e := range l.byName {
			if seen[e.Name] || l.omitted[e.Name] {
				continue
			}
			seen[e.Name] = true
			if !e.DisableModelInvocation && (above || len(largest.withName(e.Name)) == 0) {
				n++
			}
		}
	}
	return n
}

// Preloaded returns the skills of [Snapshot.ForModel] that are marked preload.
func (s *Snapshot) Preloaded() []*Entry {
	var out []*Entry
	for _, l := range s.layers {
		for _, e := range l.preload {
			if s.ByName(e.Name) == e {
				out = append(out, e)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Entry) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// IsFlat reports whether all sources list a [Listing.Layer], and each skill is in
// a top-level directory of its source that has the skill's name. A server then
// need not assign paths to the skills.
func (s *Snapshot) IsFlat() bool {
	return !s.keep && !slices.ContainsFunc(s.layers, func(l *Layer) bool { return !l.isFlat })
}
