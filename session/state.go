package session

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/llm"
)

// State is the state of a session, derived from its events. The zero value is
// the state of an empty log. A State is not safe for concurrent use. A copy
// shares data with the original; see [State.Clone]. Its JSON form may differ
// between versions.
type State struct {
	Seq    int64 // sequence number of the last applied event
	Turn   int   // number of user messages so far
	active map[string]ActiveSkill
	// delivered has the text of each skill's last load that the conversation
	// still contains, even if the skill is no longer active.
	delivered map[ID]string
	// served has the loads of skills of MCP servers whose text the conversation
	// still contains, in load order. Each version of a skill is there once.
	served []servedLoad
}

// servedLoad is a load of a skill of an MCP server.
type servedLoad struct {
	Skill  ID     `json:"skill"`
	Digest string `json:"digest"`
	Seq    int64  `json:"seq"` // sequence number of the last load of this version
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
	// UserOnly is set if only the user may load the version with the digest
	// Current. It is known only after an update.
	UserOnly bool `json:",omitempty"`
}

func (a ActiveSkill) clone() ActiveSkill {
	a.SkillLoad = a.SkillLoad.clone()
	return a
}

// Apply updates the state with an event. Apply the events of a branch once each,
// in order; see [Path]. An event of unknown type changes only Seq. The state keeps no
// reference to the event's data.
func (s *State) Apply(e Event) {
	if s.active == nil {
		s.active, s.delivered = map[string]ActiveSkill{}, map[ID]string{}
	}
	s.Seq = e.Seq
	switch {
	case e.Message != nil && e.Message.Role == llm.User:
		s.Turn++
	case e.Loaded != nil:
		a := ActiveSkill{SkillLoad: e.Loaded.clone(), Seq: e.Seq, Turn: s.Turn, Used: s.Turn - e.Loaded.UnusedTurns, OnceUntil: s.Turn, Current: e.Loaded.Digest}
		if e.Loaded.Direct {
			a.OnceUntil++ // loaded between two turns, so it applies to the next
		}
		s.active[e.Loaded.Skill.Key()] = a
		s.delivered[e.Loaded.Skill] = e.Loaded.Text
		s.addServed(servedLoad{e.Loaded.Skill, e.Loaded.Digest, e.Seq})
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
		kept := map[ID]bool{}
		for _, id := range e.Compacted.Skills {
			kept[id] = true
		}
		maps.DeleteFunc(s.active, func(_ string, a ActiveSkill) bool { return !kept[a.Skill] })
		maps.DeleteFunc(s.delivered, func(id ID, _ string) bool { return !kept[id] })
		s.served = s.servedWithout(func(l servedLoad) bool { // the summary has the active version
			a, ok := s.active[l.Skill.Key()]
			return !ok || a.Digest != l.Digest
		})
	case e.Unloaded != nil:
		delete(s.active, e.Unloaded.Skill.Key())
	case e.Updated != nil:
		if a, ok := s.active[e.Updated.Skill.Key()]; ok {
			a.Current, a.UserOnly = e.Updated.Digest, e.Updated.UserOnly
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

// addServed adds the load of a skill if it comes from an MCP server.
func (s *State) addServed(l servedLoad) {
	if !skillname.IsServed(l.Skill.Name, l.Skill.Origin) {
		return
	}
	s.served = append(s.servedWithout(func(other servedLoad) bool { return other.Skill == l.Skill && other.Digest == l.Digest }), l)
}

// servedWithout returns a new list without some loads, or nil if it is empty.
func (s *State) servedWithout(gone func(servedLoad) bool) []servedLoad {
	var out []servedLoad
	for _, l := range s.served {
		if !gone(l) {
			out = append(out, l)
		}
	}
	return out
}

// SkillsInContext returns the active skills and, of the skills of MCP servers, the loads
// whose text the conversation still contains, in load order. Until its text has
// left the conversation, such a skill may direct the model, even if it is no longer
// active or another version of it is. A load that is not active has only its skill,
// digest and sequence number set.
func (s *State) SkillsInContext() []ActiveSkill {
	out := s.Active()
	for _, l := range s.served {
		if a, ok := s.active[l.Skill.Key()]; !ok || a.Digest != l.Digest {
			out = append(out, ActiveSkill{SkillLoad: SkillLoad{Skill: l.Skill, Digest: l.Digest}, Seq: l.Seq})
		}
	}
	slices.SortFunc(out, func(a, b ActiveSkill) int { return cmp.Compare(a.Seq, b.Seq) })
	return out
}

// find returns the active skill with the given ID. It returns false if the
// skill is not active.
func (s *State) find(id ID) (ActiveSkill, bool) {
	a, ok := s.active[id.Key()]
	if !ok {
		return ActiveSkill{}, false
	}
	return a.clone(), true
}

// Clone returns a copy that is independent of s.
func (s *State) Clone() State {
	c := *s
	c.active, c.delivered, c.served = maps.Clone(s.active), maps.Clone(s.delivered), slices.Clone(s.served)
	for key, a := range c.active {
		c.active[key] = a.clone()
	}
	return c
}

// savedState is the JSON form of a [State].
type savedState struct {
	Seq       int64           `json:"seq"`
	Turn      int             `json:"turn"`
	Active    []ActiveSkill   `json:"active,omitempty"`
	Delivered []deliveredText `json:"delivered,omitempty"`
	Served    []servedLoad    `json:"served,omitempty"`
}

type deliveredText struct {
	Skill ID     `json:"skill"`
	Text  string `json:"text"`
}

// MarshalJSON implements [json.Marshaler]. Equal states have the same form.
func (s *State) MarshalJSON() ([]byte, error) {
	out := savedState{Seq: s.Seq, Turn: s.Turn, Active: s.Active(), Served: s.served}
	for id, text := range s.delivered {
		out.Delivered = append(out.Delivered, deliveredText{id, text})
	}
	slices.SortFunc(out.Delivered, func(a, b deliveredText) int {
		return cmp.Or(cmp.Compare(a.Skill.Key(), b.Skill.Key()), cmp.Compare(a.Skill.Name, b.Skill.Name))
	})
	return json.Marshal(out)
}

// UnmarshalJSON implements [json.Unmarshaler].
func (s *State) UnmarshalJSON(data []byte) error {
	var in savedState
	if err := json.Unmarshal(data, &in); err != nil {
		return err
	}
	*s = State{Seq: in.Seq, Turn: in.Turn, active: map[string]ActiveSkill{}, delivered: map[ID]string{}, served: in.Served}
	for _, a := range in.Active {
		s.active[a.Skill.Key()] = a
	}
	for _, d := range in.Delivered {
		s.delivered[d.Skill] = d.Text
	}
	return nil
}
