package usage

import (
	"encoding/json"
	"slices"

	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/toolname"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// SkillCounter counts the use of skills in a conversation's transcript. The
// counts are stored in the same transaction as the steps, so that each step is
// counted exactly once. A SkillCounter is not safe for concurrent use.
type SkillCounter struct {
	owner   string
	skillID func(session.ID) string
	state   session.State
	calls   map[string]llm.Call // calls in the last message, by ID
}

// NewSkillCounter returns a counter for a user's conversation. It calls skillID
// to find the IDs of skills. If skillID is nil, it returns nil; a nil counter
// counts nothing. state is the session's state after the last stored step, and
// the caller must not use it afterwards. calls holds the tool calls in the
// model's most recent message.
func NewSkillCounter(owner string, skillID func(session.ID) string, state session.State, calls []llm.Call) *SkillCounter {
	if skillID == nil {
		return nil
	}
	u := &SkillCounter{owner: owner, skillID: skillID, state: state, calls: map[string]llm.Call{}}
	u.setCalls(calls)
	return u
}

// StoreID returns the store ID of a loaded skill, or "" if it is unknown.
func (u *SkillCounter) StoreID(l *session.SkillLoad) string {
	if u == nil || l == nil {
		return ""
	}
	return u.skillID(l.Skill)
}

// Count returns the skill usage in new steps.
func (u *SkillCounter) Count(events []*session.Event) []store.SkillUsage {
	if u == nil {
		return nil
	}
	var sums Tally
	for _, e := range events {
		switch {
		case e.Loaded != nil:
			sums.Add(store.SkillUsage{SkillID: u.skillID(e.Loaded.Skill), Owner: u.owner, Loads: 1, Tokens: int64(e.Loaded.Tokens), LastUsed: e.Time})
		case e.Result != nil:
			skill, ok := u.skillOfCall(e.Result.Call)
			if !ok {
				continue
			}
			use := store.SkillUsage{SkillID: u.skillID(skill), Owner: u.owner, Calls: 1, LastUsed: e.Time}
			if e.Result.Error {
				use.Errors = 1
			}
			sums.Add(use)
		}
	}
	return sums.Drain()
}

// skillOfCall returns the active skill whose file, script or tool a call uses.
func (u *SkillCounter) skillOfCall(call string) (session.ID, bool) {
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

// Apply updates the counter's state with stored steps.
func (u *SkillCounter) Apply(events []*session.Event) {
	if u == nil {
		return
	}
	for _, e := range events {
		u.state.Apply(*e)
		if e.Message != nil && e.Message.Role == llm.Assistant {
			u.setCalls(e.Message.Calls)
		}
	}
}

func (u *SkillCounter) setCalls(calls []llm.Call) {
	clear(u.calls)
	for _, c := range calls {
		u.calls[c.ID] = c
	}
}
