package session

import (
	"cmp"
	"maps"
	"slices"
)

// State is what the events of a session amount to. The zero value is that of
// an empty log; [State.Clone] makes an independent copy.
type State struct {
	Seq    int64 // of the last event applied
	Turn   int   // messages of a person so far
	active map[string]Active
}

// Active is a skill in force.
type Active struct {
	Loaded
	Seq  int64 // of the event that loaded it
	Turn int   // in which it was loaded
	Used int   // the turn in which it was used last; loading it is a use
	Once int   // the last turn for which it is, where it is kept for one
	// Current is the digest of SKILL.md as last seen; it differs from
	// Digest after an update.
	Current string
}

func (a Active) clone() Active {
	a.Loaded = a.Loaded.clone()
	return a
}

// Apply brings the state forward by one event. Events of types that it does
// not know change nothing but Seq.
func (s *State) Apply(e Event) {
	if s.active == nil {
		s.active = map[string]Active{}
	}
	s.Seq = e.Seq
	switch {
	case e.Message != nil && e.Message.Role == RoleUser:
		s.Turn++
	case e.Loaded != nil:
		a := Active{Loaded: e.Loaded.clone(), Seq: e.Seq, Turn: s.Turn, Used: s.Turn - e.Loaded.Unused, Once: s.Turn, Current: e.Loaded.Digest}
		if e.Loaded.Direct {
			a.Once++ // between two turns
		}
		s.active[e.Loaded.Skill.Key()] = a
	case e.Used != nil:
		if a, ok := s.active[e.Used.Skill.Key()]; ok {
			a.Used = s.Turn
			a.Keep = longer(e.Used.Keep, a.Keep)
			if e.Used.Set {
				a.Keep, a.Once = e.Used.Keep, s.Turn+1
			}
			s.active[e.Used.Skill.Key()] = a
		}
	case e.Compacted != nil:
		maps.DeleteFunc(s.active, func(_ string, a Active) bool { return !slices.Contains(e.Compacted.Skills, a.Skill) })
	case e.Unloaded != nil:
		delete(s.active, e.Unloaded.Skill.Key())
	case e.Updated != nil:
		if a, ok := s.active[e.Updated.Skill.Key()]; ok {
			a.Current = e.Updated.Digest
			s.active[e.Updated.Skill.Key()] = a
		}
	}
}

// Clone returns a copy that shares nothing with s.
func (s *State) Clone() State {
	c := State{Seq: s.Seq, Turn: s.Turn, active: make(map[string]Active, len(s.active))}
	for key, a := range s.active {
		c.active[key] = a.clone()
	}
	return c
}

// Active returns the skills in force in the order in which they were loaded.
func (s *State) Active() []Active {
	out := make([]Active, 0, len(s.active))
	for _, a := range s.active {
		out = append(out, a.clone())
	}
	slices.SortFunc(out, func(a, b Active) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Find returns the skill in force with that identity.
func (s *State) Find(id ID) (Active, bool) {
	a, ok := s.active[id.Key()]
	if !ok {
		return Active{}, false
	}
	return a.clone(), true
}
