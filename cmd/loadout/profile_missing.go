package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/config"
	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/profile"
	"github.com/loadout-dev/loadout/internal/upstream"
	"github.com/loadout-dev/loadout/skill"
)

// noteMissingSkills prints the skills of a profile that do not exist or are not
// available. rt has only the skills of the profile.
func (a *app) noteMissingSkills(ctx context.Context, c *config.Config, p *profile.Profile, rt *loadout.Runtime) {
	if p == nil || len(missingSkills(p, rt)) == 0 {
		return
	}
	all, err := a.newRuntimeWith(ctx, c, false, nil) // all skills, for suggestions
	if err != nil {
		return // it was readable a moment ago
	}
	defer all.Close()
	for _, text := range missingSkills(p, all) {
		a.Note("profile %s: %s", p.Name, text)
	}
}

// missingSkills describes the skills of a profile that do not exist or are
// hidden, with similar names from rt.
func missingSkills(p *profile.Profile, rt *loadout.Runtime) []string {
	snap := rt.Catalog().Snapshot()
	if snap.Disabled {
		return nil // already reported
	}
	var names, out []string
	for _, e := range snap.Skills() {
		names = append(names, e.Name)
	}
	for _, s := range p.Skills {
		name := skill.NormalizeName(strings.TrimSpace(s))
		e, err := snap.Get(name)
		if err == nil && e.Name != name && e.Origin+"/"+e.Name != name {
			out = append(out, fmt.Sprintf("%q selects no skill: write its name, or its origin and name as %s/%s", s, e.Origin, e.Name))
		}
		if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok {
			text := fmt.Sprintf("skill %q not found%s", s, suggestNames(s, names))
			if missing.Reason != "" {
				text = fmt.Sprintf("skill %q is not available: %s", s, missing.Reason)
			}
			out = append(out, text)
		}
	}
	return out
}

// missingServers describes the servers that a profile names and that the user
// does not have.
func missingServers(p *profile.Profile, own []*upstream.Config) []string {
	var names, out []string
	for _, s := range own {
		names = append(names, s.Name)
	}
	for _, s := range p.ServerNames {
		if !slices.Contains(names, s) {
			out = append(out, fmt.Sprintf("MCP server %q not found%s", s, suggestNames(s, names)))
		}
	}
	return out
}

// suggestNames returns the end of a message that suggests similar names, or "".
func suggestNames(name string, names []string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		name = rest
	}
	asked := editdistance.Normalize(name)
	most := min(2, (len(asked)+1)/2)
	var like []string
	for _, n := range names {
		if len(like) < 3 && !slices.Contains(like, n) && editdistance.Distance(asked, editdistance.Normalize(n), most) <= most {
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(like, " or ") + "?"
}
