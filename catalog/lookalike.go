package catalog

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// lookalikes returns a problem for each visible skill whose name differs from
// another skill's name but looks the same. Only names with characters outside
// of lower-case ASCII are compared.
func (s *Snapshot) lookalikes() []Problem {
	var out []Problem
	var all []*Entry
	for _, l := range s.layers {
		for _, e := range l.lookalikes {
			if s.ByName(e.Name) == e {
				all = append(all, e)
			}
		}
	}
	slices.SortFunc(all, func(a, b *Entry) int { return cmp.Compare(a.Name, b.Name) })
	for _, e := range all {
		known := s.ByName(untrusted.Skeleton(e.Name))
		if known == nil {
			continue
		}
		out = append(out, Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{Severity: skill.Warning, Code: "lookalike-name",
			Message: fmt.Sprintf("name %+q looks like that of the skill %s from %s", e.Name, known.Name, known.Origin),
			Fix:     "find out who wrote it; rename or delete it"}})
	}
	return out
}
