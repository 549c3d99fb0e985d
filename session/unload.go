package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NeededByOthersError is returned by [Session.Unload] if active skills need the
// skill.
type NeededByOthersError struct {
	Name string   // as passed to Unload
	By   []string // names of the skills that need it, directly or indirectly
}

func (e *NeededByOthersError) Error() string {
	return fmt.Sprintf("skill %s is needed by %s; unload them too, or all at once", e.Name, strings.Join(e.By, ", "))
}

// ErrNotLoaded is returned by [Session.Unload] if the skill is not active.
var ErrNotLoaded = errors.New("skill is not loaded")

// Unload makes a skill inactive. name is its name or [ID.Key]. If active skills
// need it, Unload returns a [*NeededByOthersError], or unloads them first if
// cascade is set. It returns the names of the unloaded skills, dependents first.
// reason is recorded in [SkillUnload].
//
// The error wraps [ErrNotLoaded] if the skill is not active. If the log cannot
// be written, Unload returns an error and unloads nothing.
func (s *Session) Unload(ctx context.Context, name, reason string, cascade bool) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := s.state.Active()
	i := slices.IndexFunc(active, func(a ActiveSkill) bool { return a.Skill.Name == name || a.Skill.Key() == name })
	if i < 0 {
		return nil, fmt.Errorf("unload %s: %w", name, ErrNotLoaded)
	}
	going := dependents(active, active[i].Skill.Name)
	if len(going) > 0 && !cascade {
		return nil, &NeededByOthersError{name, skillNames(going)}
	}
	going = append(going, active[i])
	var events []Event
	for _, a := range going {
		why := reason
		if a.Skill != active[i].Skill {
			why = fmt.Sprintf("needs %s, which was unloaded", name)
		}
		events = append(events, Event{Unloaded: &SkillUnload{a.Skill, why}})
	}
	if err := s.append(ctx, events...); err != nil {
		return nil, fmt.Errorf("unload %s: %w", name, err)
	}
	return skillNames(going), nil
}

// dependents returns the active skills that need name, directly or indirectly.
// Each precedes the skills that it needs.
func dependents(active []ActiveSkill, name string) []ActiveSkill {
	needs := func(a ActiveSkill, name string) bool { return slices.Contains(a.Needs, name) }
	var out []ActiveSkill
	seen := map[string]bool{name: true}
	var visit func(name string)
	visit = func(name string) {
		for _, a := range active {
			if needs(a, name) && !seen[a.Skill.Name] {
				seen[a.Skill.Name] = true
				visit(a.Skill.Name)
				out = append(out, a)
			}
		}
	}
	visit(name)
	return out
}

func skillNames(active []ActiveSkill) []string {
	var out []string
	for _, a := range active {
		out = append(out, a.Skill.Name)
	}
	return out
}
