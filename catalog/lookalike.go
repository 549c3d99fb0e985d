package catalog

import (
	"fmt"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// lookalikes returns a problem for each visible skill whose name is not that of
// another skill but looks like it. Only names with characters outside of
// lower-case ASCII are compared.
func (s *Snapshot) lookalikes() []Problem {
	var out []Problem
	for _, e := range s.shown {
		like := untrusted.Skeleton(e.Name)
		if like == e.Name {
			continue
		}
		known := s.winner(s.withName(like))
		if known == nil {
			continue
		}
		out = append(out, Problem{Path: e.Path, Origin: e.Origin, Diagnostic: skill.Diagnostic{Severity: skill.Warning, Code: "lookalike-name",
			Message: fmt.Sprintf("name %+q looks like that of the skill %s from %s", e.Name, known.Name, known.Origin),
			Fix:     "find out who wrote it; rename or delete it"}})
	}
	return out
}
