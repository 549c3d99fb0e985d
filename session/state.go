package session

import (
	"cmp"
	"slices"
)

// State is what the events of a session amount to. It is a value of its own;
// change a copy by [State.Apply].
type State struct {
	Seq    int64 // of the last event applied
	Turn   int   // messages of a person so far
	active map[string]*Active
}

// Active is a skill in force.
type Active struct {
	Loaded
	Seq  int64 // of the event that loaded it
	Turn int   // in which it was loaded
	// Current is the digest of SKILL.md as last seen; it differs from
	// Digest after an update.
	Current string
}

// Apply brings the state forward by one event.
func (s *State) Apply(e Event) {
	if s.active == nil {
		s.active = map[string]*Active{}
	}
	s.Seq = e.Seq
	switch {
	case e.Message != nil && e.Message.Role == RoleUser:
		s.Turn++
	case e.Loaded != nil:
		s.active[e.Loaded.Skill.Key()] = &Active{Loaded: *e.Loaded, Seq: e.Seq, Turn: s.Turn, Current: e.Loaded.Digest}
	case e.Unloaded != nil:
		delete(s.active, e.Unloaded.Skill.Key())
	case e.Updated != nil:
		if a := s.active[e.Updated.Skill.Key()]; a != nil {
			a.Current = e.Updated.Digest
		}
	}
}

// Active returns the skills in force in the order in which they were loaded.
func (s *State) Active() []Active {
	out := make([]Active, 0, len(s.active))
	for _, a := range s.active {
		out = append(out, *a)
	}
	slices.SortFunc(out, func(a, b Active) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// Find returns the skill in force with that identity.
func (s *State) Find(id ID) (Active, bool) {
	if a := s.active[id.Key()]; a != nil {
		return *a, true
	}
	return Active{}, false
}
