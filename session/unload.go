package session

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// NeededError says that a skill cannot be unloaded because others need it.
type NeededError struct {
	Name string
	By   []string
}

func (e *NeededError) Error() string {
	return fmt.Sprintf("skill %s is needed by %s; unload them too, or all at once", e.Name, strings.Join(e.By, ", "))
}

// ErrNotLoaded says that a skill is not in force.
var ErrNotLoaded = errors.New("skill is not loaded")

// Unload takes a skill out of force, by its name or [ID.Key]. Where other
// skills in force need it, it is a [*NeededError], or with cascade these are
// unloaded first. It returns the names of what was unloaded.
func (s *Session) Unload(ctx context.Context, name, reason string, cascade bool) ([]string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	active := s.state.Active()
	i := slices.IndexFunc(active, func(a Active) bool { return a.Skill.Name == name || a.Skill.Key() == name })
	if i < 0 {
		return nil, fmt.Errorf("unload %s: %w", name, ErrNotLoaded)
	}
	going := dependents(active, active[i].Skill.Name)
	if len(going) > 0 && !cascade {
		return nil, &NeededError{name, names(going)}
	}
	going = append(going, active[i])
	var events []Event
	for _, a := range going {
		why := reason
		if a.Skill != active[i].Skill {
			why = fmt.Sprintf("needs %s, which was unloaded", name)
		}
		events = append(events, Event{Type: TypeUnloaded, Unloaded: &Unloaded{a.Skill, why}})
	}
	if err := s.append(ctx, events...); err != nil {
		return nil, fmt.Errorf("unload %s: %w", name, err)
	}
	return names(going), nil
}

// dependents are the active skills that need name, directly or through
// others, each before those it needs.
func dependents(active []Active, name string) []Active {
	needs := func(a Active, name string) bool { return slices.Contains(a.Needs, name) }
	var out []Active
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

func names(active []Active) []string {
	var out []string
	for _, a := range active {
		out = append(out, a.Skill.Name)
	}
	return out
}
