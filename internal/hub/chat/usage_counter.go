package chat

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/session"
)

// usageCounter counts the use of skills in the transcript of a conversation. The
// counts are stored in the same transaction as the steps, so each step counts
// once. The journal's mutex guards the counter.
type usageCounter struct {
	skillID func(session.ID) string
	state   session.State
	calls   map[string]session.Call // calls in the last message, by ID
}

func newUsageCounter(skillID func(session.ID) string) *usageCounter {
	if skillID == nil {
		return nil
	}
	return &usageCounter{skillID: skillID, calls: map[string]session.Call{}}
}

// storeID returns the store ID of a loaded skill, or "" if it is unknown.
func (u *usageCounter) storeID(l *session.SkillLoad) string {
	if u == nil || l == nil {
		return ""
	}
	return u.skillID(l.Skill)
}

// countUses returns the counts for new steps.
func (u *usageCounter) countUses(events []*session.Event) []store.SkillUsage {
	if u == nil {
		return nil
	}
	counts := map[string]*store.SkillUsage{}
	at := func(skill session.ID, when time.Time) *store.SkillUsage {
		id := u.skillID(skill)
		if id == "" {
			return &store.SkillUsage{}
		}
		if counts[id] == nil {
			counts[id] = &store.SkillUsage{SkillID: id}
		}
		counts[id].LastUsed = when
		return counts[id]
	}
	for _, e := range events {
		switch {
		case e.Loaded != nil:
			use := at(e.Loaded.Skill, e.Time)
			use.Loads++
			use.Tokens += int64(e.Loaded.Tokens)
		case e.Result != nil:
			skill, ok := u.skillOfCall(e.Result.Call)
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
	var out []store.SkillUsage
	for _, use := range counts {
		out = append(out, *use)
	}
	return out
}

// skillOfCall returns the active skill whose file, script or tool a call uses.
func (u *usageCounter) skillOfCall(call string) (session.ID, bool) {
	var args struct {
		Skill string `json:"skill"`
		Name  string `json:"name"`
	}
	c, ok := u.calls[call]
	if !ok || c.Name == toolname.LoadSkill || c.Name == toolname.UnloadSkill || json.Unmarshal([]byte(c.Arguments), &args) != nil {
		return session.ID{}, false
	}
	for _, a := range u.state.Active() {
		if args.Skill != "" && a.Skill.Name == args.Skill || args.Name != "" && slices.Contains(a.Tools, args.Name) {
			return a.Skill, true
		}
	}
	return session.ID{}, false
}

// apply updates the state with steps that were stored.
func (u *usageCounter) apply(events []*session.Event) {
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
