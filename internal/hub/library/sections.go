package library

import (
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Section is a section of the library's start page: the first skills of a list, and
// their total number.
type Section struct {
	Name   string   `json:"name" enum:"attention,approved,team,new" doc:"attention: those that need your attention, including shadowed ones; approved: code approved in the period; team: those that you and the members of your groups use most; new: added in the period"`
	Total  int      `json:"total" doc:"Number of skills in the section"`
	Skills []*Skill `json:"items" nullable:"false" doc:"The first of them, at most 4"`
}

// Overview is the start page of a library.
type Overview struct {
	Total    int       `json:"total" doc:"Number of skills that you can access by name"`
	Facets   Facets    `json:"facets"`
	Sections []Section `json:"sections" nullable:"false" doc:"Without those that are empty"`
}

// maxInSection is the maximum number of skills in a [Section].
const maxInSection = 4

// Overview returns the start page of the library: the skills that [Library.List]
// selects by default, and shadowed ones that need attention, in sections. A skill can
// be in several sections. Overview reads the rows of these few skills only.
func (l *Library) Overview(ctx context.Context, p account.Principal, since time.Time) (*Overview, error) {
	found, shadowed, _, err := l.findListed(ctx, p, Query{})
	if err != nil {
		return nil, err
	}
	all := slices.Concat(found, shadowed)
	attention, err := l.attentionOf(ctx, p, all)
	if err != nil {
		return nil, err
	}
	team, err := l.countTeamUses(ctx, p, since)
	if err != nil {
		return nil, err
	}
	out := &Overview{Total: len(found), Facets: countFacets(found, attention), Sections: []Section{}}
	var shown []*indexedSkill
	var parts [][]*indexedSkill
	for _, s := range []struct {
		name     string
		order    Order
		of       []*indexedSkill
		contains func(k *indexedSkill) bool
	}{
		{"attention", ByUpdate, all, func(k *indexedSkill) bool { return attention[k.id] != nil }},
		{"approved", ByApproval, found, func(k *indexedSkill) bool { return k.code && k.approved.After(since) }},
		{"team", ByUses, found, func(k *indexedSkill) bool { return team[k.id] > 0 }},
		{"new", ByCreation, found, func(k *indexedSkill) bool { return k.created.After(since) && k.home != store.Bundled }},
	} {
		order, err := l.order(ctx, p, Query{Order: s.order}, nil, team)
		if err != nil {
			return nil, err
		}
		part := slices.DeleteFunc(slices.Clone(s.of), func(k *indexedSkill) bool { return !s.contains(k) })
		if len(part) == 0 {
			continue
		}
		slices.SortFunc(part, order)
		out.Sections = append(out.Sections, Section{Name: s.name, Total: len(part)})
		part = part[:min(len(part), maxInSection)]
		parts, shown = append(parts, part), append(shown, part...)
	}
	uses, err := l.usesOf(ctx, p, since, shown)
	if err != nil {
		return nil, err
	}
	var loaded Listing
	if err := l.loadListed(ctx, p, Query{}, &loaded, shown, uses, attention); err != nil {
		return nil, err
	}
	for i, part := range parts {
		out.Sections[i].Skills = []*Skill{}
		for _, k := range part {
			if at := slices.IndexFunc(loaded.Skills, func(s *Skill) bool { return s.ID == k.id }); at >= 0 { // otherwise just deleted
				out.Sections[i].Skills = append(out.Sections[i].Skills, loaded.Skills[at])
			}
		}
	}
	return out, nil
}
