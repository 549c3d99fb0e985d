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
	"github.com/loadout-dev/loadout/internal/near"
	"github.com/loadout-dev/loadout/profile"
	"github.com/loadout-dev/loadout/skill"
	"github.com/loadout-dev/loadout/upstream"
)

// noteAbsent says which skills of a profile are not here, or not available. rt has
// those of the profile only.
func (a *app) noteAbsent(ctx context.Context, c *config.Config, p *profile.Profile, rt *loadout.Runtime) {
	if p == nil || len(absentSkills(p, rt)) == 0 {
		return
	}
	all, err := a.runtimeOf(ctx, c, false, nil) // for what was meant
	if err != nil {
		return // it could be read a moment ago
	}
	defer all.Close()
	for _, text := range absentSkills(p, all) {
		a.note("profile %s: %s", p.Name, text)
	}
}

// absentSkills says which skills of a profile are not there, or are hidden, and
// which of those of rt may be meant.
func absentSkills(p *profile.Profile, rt *loadout.Runtime) []string {
	snap := rt.Catalog().Snapshot()
	if snap.Disabled {
		return nil // which is said already
	}
	var names, out []string
	for _, e := range snap.Skills() {
		names = append(names, e.Name)
	}
	for _, s := range p.Skills {
		name := skill.NormalizeName(strings.TrimSpace(s))
		e, err := snap.Get(name)
		if err == nil && e.Name != name && e.Origin+"/"+e.Name != name {
			out = append(out, fmt.Sprintf("%q chooses no skill: write the name of one, or its origin and name as %s/%s", s, e.Origin, e.Name))
		}
		if missing, ok := errors.AsType[*catalog.NotFoundError](err); ok {
			text := fmt.Sprintf("there is no skill %q%s", s, didYouMean(s, names))
			if missing.Reason != "" {
				text = fmt.Sprintf("skill %q is not available: %s", s, missing.Reason)
			}
			out = append(out, text)
		}
	}
	return out
}

// absentServers says which servers that a profile names are not among the person's.
func absentServers(p *profile.Profile, own []*upstream.Config) []string {
	var names, out []string
	for _, s := range own {
		names = append(names, s.Name)
	}
	for _, s := range p.ServerNames {
		if !slices.Contains(names, s) {
			out = append(out, fmt.Sprintf("there is no MCP server %q of yours%s", s, didYouMean(s, names)))
		}
	}
	return out
}

// didYouMean ends a message in the names that a misspelled one may stand for, ""
// for none.
func didYouMean(name string, names []string) string {
	if _, rest, ok := strings.Cut(name, "/"); ok {
		name = rest
	}
	asked := near.Letters(name)
	most := min(2, (len(asked)+1)/2)
	var like []string
	for _, n := range names {
		if len(like) < 3 && !slices.Contains(like, n) && near.Distance(asked, near.Letters(n), most) <= most {
			like = append(like, n)
		}
	}
	if len(like) == 0 {
		return ""
	}
	return "; did you mean " + strings.Join(like, " or ") + "?"
}
