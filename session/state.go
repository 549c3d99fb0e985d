package session

import (
	"cmp"
	"maps"
	"slices"
)

// State is the state of a session, derived from its events. The zero value is
// the state of an empty log. A State is not safe for concurrent use. A copy
// shares data with the original.
type State struct {
	Seq    int64 // sequence number of the last applied event
	Turn   int   // number of user messages so far
	active map[string]ActiveSkill
}

// ActiveSkill is an active skill with its load event and last use.
type ActiveSkill struct {
	SkillLoad
	Seq       int64 // sequence number of the load event
	Turn      int   // turn of the load
	Used      int   // turn of the last use, including the load
	OnceUntil int   // last turn in which the skill is active, for RetainOnce
	// Current is the last known digest of SKILL.md. It differs from Digest
	// after an update.
	Current string
}

func (a ActiveSkill) clone() ActiveSkill {
	a.SkillLoad = a.SkillLoad.clone()
	return a
}

// Apply updates the state with an event. Apply the events of a log once each,
// in order. An event of unknown type changes only Seq. The state keeps no
// reference to the event's data.
func (s *State) Apply(e Event) {
	if s.active == nil {
		s.active = map[string]ActiveSkill{}
	}
	s.Seq = e.Seq
	switch {
	case e.Message != nil && e.Message.Role == RoleUser:
		s.Turn++
	case e.Loaded != nil:
		a := ActiveSkill{SkillLoad: e.Loaded.clone(), Seq: e.Seq, Turn: s.Turn, Used: s.Turn - e.Loaded.UnusedTurns, OnceUntil: s.Turn, Current: e.Loaded.Digest}
		if e.Loaded.Direct {
			a.OnceUntil++ // loaded between two turns, so it applies to the next
		}
		s.active[e.Loaded.Skill.Key()] = a
	case e.Used != nil:
		if a, ok := s.active[e.Used.Skill.Key()]; ok {
			a.Used = s.Turn
			a.Tools = slices.Concat(a.Tools, e.Used.Tools)
			a.Retention = longerRetention(e.Used.Retention, a.Retention)
			if e.Used.Exact {
				a.Retention, a.OnceUntil = e.Used.Retention, s.Turn+1
			}
			s.active[e.Used.Skill.Key()] = a
		}
	case e.Compacted != nil:
		maps.DeleteFunc(s.active, func(_ string, a ActiveSkill) bool { return !slices.Contains(e.Compacted.Skills, a.Skill) })
	case e.Unloaded != nil:
		delete(s.active, e.Unloaded.Skill.Key())
	case e.Updated != nil:
		if a, ok := s.active[e.Updated.Skill.Key()]; ok {
			a.Current = e.Updated.Digest
			s.active[e.Updated.Skill.Key()] = a
		}
	}
}

// Active returns copies of the active skills in load order.
func (s *State) Active() []ActiveSkill {
	out := make([]ActiveSkill, 0, len(s.active))
	for _, a := range s.active {
		out = append(out, a.clone())
	}
	slices.SortFunc(out, func(a, b ActiveSkill) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// find returns the active skill with the given ID. The result is false if the
// skill is not active.
func (s *State) find(id ID) (ActiveSkill, bool) {
	a, ok := s.active[id.Key()]
	if !ok {
		return ActiveSkill{}, false
	}
	return a.clone(), true
}
