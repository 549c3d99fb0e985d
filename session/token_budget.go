package session

import (
	"fmt"
	"slices"
)

// longerRetention returns the longer of two retention modes.
func longerRetention(a, b RetentionMode) RetentionMode {
	for _, k := range []RetentionMode{RetainPinned, RetainUsed} {
		if a == k || b == k {
			return k
		}
	}
	return RetainOnce
}

// evictions returns unload events that bring the active skills and the skills
// being loaded within the budget. The least recently used skills are unloaded
// first, but never pinned skills, skills being loaded or dependencies of active
// skills. s.mu must be held.
func (s *Session) evictions(all []*Skill, loads []Event) []Event {
	if s.budget <= 0 {
		return nil
	}
	total := 0
	for _, e := range loads {
		if e.Loaded != nil {
			total += e.Loaded.Tokens
		}
	}
	rest := slices.DeleteFunc(s.state.Active(), func(a ActiveSkill) bool { return findLoad(loads, a.Skill) != nil })
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
		events = append(events, Event{Unloaded: &SkillUnload{rest[i].Skill, reason}})
		rest = slices.Delete(rest, i, i+1)
	}
	return events
}

// leastUsed returns the index of the least recently used skill that may be
// unloaded, or -1.
func leastUsed(active []ActiveSkill, loaded []*Skill) int {
	best := -1
	for i, a := range active {
		stays := a.Retention == RetainPinned ||
			slices.ContainsFunc(loaded, func(m *Skill) bool { return m.ID == a.Skill }) ||
			slices.ContainsFunc(active, func(b ActiveSkill) bool { return slices.Contains(b.Needs, a.Skill.Name) })
		if !stays && (best < 0 || a.Used < active[best].Used) {
			best = i
		}
	}
	return best
}

// findLoad returns the load event of the skill with the given ID, or nil.
func findLoad(events []Event, id ID) *SkillLoad {
	for _, e := range events {
		if e.Loaded != nil && e.Loaded.Skill == id {
			return e.Loaded
		}
	}
	return nil
}
