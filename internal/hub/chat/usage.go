package chat

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/session"
)

// uses counts what a conversation does with skills, from its transcript: what is
// counted is added with the steps that say so, and so once. It is guarded by the
// journal.
type uses struct {
	skillID func(session.ID) string
	state   session.State
	calls   map[string]session.Call // of the last message, by ID
}

func newUses(skillID func(session.ID) string) *uses {
	if skillID == nil {
		return nil
	}
	return &uses{skillID: skillID, calls: map[string]session.Call{}}
}

// idOf is the id in the store of a skill that is loaded, "" where that is not known.
func (u *uses) idOf(l *session.Loaded) string {
	if u == nil || l == nil {
		return ""
	}
	return u.skillID(l.Skill)
}

// of is what some steps to come count for.
func (u *uses) of(events []*session.Event) []store.Use {
	if u == nil {
		return nil
	}
	counts := map[string]*store.Use{}
	at := func(skill session.ID, when time.Time) *store.Use {
		id := u.skillID(skill)
		if id == "" {
			return &store.Use{}
		}
		if counts[id] == nil {
			counts[id] = &store.Use{SkillID: id}
		}
		counts[id].Used = when
		return counts[id]
	}
	for _, e := range events {
		switch {
		case e.Loaded != nil:
			use := at(e.Loaded.Skill, e.Time)
			use.Loads++
			use.Tokens += int64(e.Loaded.Tokens)
		case e.Result != nil:
			skill, ok := u.about(e.Result.Call)
			if !ok {
				continue
			}
			use := at(skill, e.Time)
			use.Calls++
			if e.Result.Error {
				use.Errors++
			}
		}
	}
	var out []store.Use
	for _, use := range counts {
		out = append(out, *use)
	}
	return out
}

// about is the skill in force whose file or script a call named, or that brought its
// tool.
func (u *uses) about(call string) (session.ID, bool) {
	var args struct {
		Skill string `json:"skill"`
		Name  string `json:"name"`
	}
	c, ok := u.calls[call]
	if !ok || c.Name == "load_skill" || c.Name == "unload_skill" || json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return session.ID{}, false
	}
	for _, a := range u.state.Active() {
		if args.Skill != "" && a.Skill.Name == args.Skill || args.Name != "" && slices.Contains(a.Tools, args.Name) {
			return a.Skill, true
		}
	}
	return session.ID{}, false
}

// apply brings what is known forward by steps that are in the transcript.
func (u *uses) apply(events []*session.Event) {
	if u == nil {
		return
	}
	for _, e := range events {
		u.state.Apply(*e)
		if e.Message != nil && e.Message.Role == session.RoleAssistant {
			clear(u.calls)
			for _, c := range e.Message.Calls {
				u.calls[c.ID] = c
			}
		}
	}
}
