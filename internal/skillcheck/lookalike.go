package skillcheck

import (
	"fmt"
	"slices"

	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/skill"
)

// AddLookalikes adds a warning to each result whose name looks like, but is
// not, the name of another skill. The other skill is in results, or its name is
// in known.
func AddLookalikes(results []Validation, known []string) {
	names := map[string]bool{}
	for _, name := range known {
		names[name] = true
	}
	for _, v := range results {
		names[v.Name] = true
	}
	for i, v := range results {
		like := untrusted.Skeleton(v.Name)
		if like == v.Name || !names[like] {
			continue
		}
		results[i].Diagnostics = append(slices.Clip(v.Diagnostics), skill.Diagnostic{Severity: skill.Warning, Code: "lookalike-name",
			Message: fmt.Sprintf("name %+q looks like that of the skill %s", v.Name, like), Fix: "find out who wrote it; rename or delete it"})
	}
}
