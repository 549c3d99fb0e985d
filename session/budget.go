package session

import (
	"fmt"
	"slices"
)

// longer is the one of two that keeps a skill longer in force.
func longer(a, b Keep) Keep {
	for _, k := range []Keep{KeepPinned, KeepUsed} {
		if a == k || b == k {
			return k
		}
	}
	return KeepOnce
}

// beyond are the ends of skills that have to go, so that what is in force with the
// loads is within the budget: what was used least recently first, but neither what is
// pinned, nor what is loaded, nor what others in force need. s.mu is held.
func (s *Session) beyond(all []*Material, loads []Event) []Event {
	if s.budget <= 0 {
		return nil
	}
	total := 0
	for _, e := range loads {
		if e.Loaded != nil {
			total += e.Loaded.Tokens
		}
	}
	rest := slices.DeleteFunc(s.state.Active(), func(a Active) bool { return find(loads, a.Skill) != nil })
	for _, a := range rest {
		total += a.Tokens
	}
	reason := fmt.Sprintf("the instructions in force are bounded to %d tokens", s.budget)
	var events []Event
	for total > s.budget {
		i := leastUsed(rest, all)
		if i < 0 {
			break
		}
		total -= rest[i].Tokens
		events = append(events, Event{Type: TypeUnloaded, Unloaded: &Unloaded{rest[i].Skill, reason}})
		rest = slices.Delete(rest, i, i+1)
	}
	return events
}

// leastUsed is the index of what was used least recently and can go, or -1.
func leastUsed(active []Active, loaded []*Material) int {
	best := -1
	for i, a := range active {
		stays := a.Keep == KeepPinned ||
			slices.ContainsFunc(loaded, func(m *Material) bool { return m.ID == a.Skill }) ||
			slices.ContainsFunc(active, func(b Active) bool { return slices.Contains(b.Needs, a.Skill.Name) })
		if !stays && (best < 0 || a.Used < active[best].Used) {
			best = i
		}
	}
	return best
}

// find is the load of a skill among events, or nil.
func find(events []Event, id ID) *Loaded {
	for _, e := range events {
		if e.Loaded != nil && e.Loaded.Skill == id {
			return e.Loaded
		}
	}
	return nil
}
