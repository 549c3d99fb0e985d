package session

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/loadout-dev/loadout/llm"
)

// PastMessage is a message in another program's conversation.
type PastMessage struct {
	// Role is [llm.User], [llm.Assistant] or a role of the other program.
	Role llm.Role `json:"role"`
	Text string   `json:"text,omitempty"`
	// LoadedSkills lists the skills that the program recorded with a model's
	// message; see [Session.LoadedSkills]. It is nil if nothing was recorded,
	// and empty if no skill was loaded.
	LoadedSkills []string `json:"loaded_skills"`
	// Calls are the tool calls in a model's message.
	Calls []PastCall `json:"calls,omitempty"`
}

// PastCall is a tool call in another program's conversation.
type PastCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"`       // a JSON object
	Error     bool   `json:"error,omitempty"` // whether the call failed
}

// RestoreOptions configures [Session.Restore]. The zero value is ready to use.
type RestoreOptions struct {
	// Text enables parsing of the model's text if nothing else in the history
	// shows which skills were loaded. A load must be reported on its own line,
	// outside quotations and code. Messages over 64 KiB are not parsed.
	Text bool
}

// Limits on a restore.
const (
	maxLookups = 64  // maximum number of names to look up
	maxName    = 256 // maximum number of bytes in a name
	maxText    = 64 << 10
)

// Restore loads the skills that would still be active in a conversation stored
// by another program, except skills that are already active. It loads their
// dependencies too, and the most recently used skill last. It uses the session's
// retention and budget. Call it before the next user message. A conversation
// that has its own log need not be restored. o may be nil.
//
// Restore uses the skills recorded with the model's messages in the last turns.
// In a turn without a record, it uses the calls of load_skill, activate_skill
// and read_skill. A turn starts with a user message to which the model
// responded, and extends to the start of the next turn. A user message without
// a response does not start a turn. Restore ignores names that are not found,
// skills without instructions and skills that only the user may load. It looks
// up at most 64 names of up to 256 bytes. It ignores calls with over 64 KiB of
// arguments.
//
// The load events have [SkillLoad.Direct] set: the current text of each skill
// becomes part of the conversation at its event. Restore does not append the
// messages of the history.
//
// If some skills cannot be read, Restore loads the others and returns the
// errors joined. If the log cannot be written, it loads nothing and returns an
// error. If ctx is done, it loads nothing and returns the cause.
func (s *Session) Restore(ctx context.Context, history []PastMessage, o *RestoreOptions) error {
	loads, problem := s.pastLoads(ctx, history, o != nil && o.Text)
	s.mu.Lock()
	defer s.mu.Unlock()
	loads = slices.DeleteFunc(loads, func(e Event) bool {
		_, ok := s.state.find(e.Loaded.Skill)
		return ok
	})
	if len(loads) == 0 {
		return problem
	}
	return errors.Join(problem, s.append(ctx, loads...))
}

// pastLoads returns load events for the skills that would still be active after
// a history. If text is set, it may parse the model's text.
func (s *Session) pastLoads(ctx context.Context, history []PastMessage, text bool) ([]Event, error) {
	r := restoration{budget: s.budget, unused: map[string]int{}, requested: map[string]bool{}}
	var problems []error
	for _, l := range lastLoads(history, s.retention, text) {
		all, err := s.skills.Fetch(ctx, l.name)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			problems = append(problems, fmt.Errorf("restore skill %q: %w", l.name, err))
		}
		if err == nil && !r.add(all, l.ago) {
			break
		}
	}
	return r.events(), errors.Join(problems...)
}

// restoration collects skills, most recently used first.
type restoration struct {
	budget    int
	total     int
	groups    [][]*Skill      // each group holds a skill after its dependencies
	unused    map[string]int  // number of turns since the last use, by skill key
	requested map[string]bool // keys of the skills that were loaded by request
}

// add adds a skill with its dependencies. If they exceed the budget, it returns
// false, and the caller must not add skills that were used earlier.
func (r *restoration) add(all []*Skill, ago int) bool {
	if len(all) == 0 {
		return true
	}
	main := all[len(all)-1]
	if main.Hidden || main.body() == "" {
		return true
	}
	tokens := 0
	for _, m := range all {
		if _, ok := r.unused[m.ID.Key()]; !ok {
			tokens += m.Tokens
		}
	}
	if r.budget > 0 && len(r.groups) > 0 && r.total+tokens > r.budget {
		return false
	}
	r.total += tokens
	r.groups = append(r.groups, all)
	r.requested[main.ID.Key()] = true
	for _, m := range all {
		if _, ok := r.unused[m.ID.Key()]; !ok {
			r.unused[m.ID.Key()] = ago
		}
	}
	return true
}

// events returns the load events. The most recently used skill is last.
func (r *restoration) events() []Event {
	var out []Event
	done := map[string]bool{}
	for _, all := range slices.Backward(r.groups) {
		for _, m := range all {
			key := m.ID.Key()
			if done[key] {
				continue
			}
			done[key] = true
			l := SkillLoad{Skill: m.ID, Title: m.distinctTitle(), Digest: m.Digest, Version: m.Version, Text: Render(m), Files: m.Files, Tokens: m.Tokens, Needs: m.Needs,
				Direct: true, AllowedTools: m.AllowedTools, Model: m.Model, UnusedTurns: r.unused[key]}
			if !r.requested[key] {
				l.RequiredBy = all[len(all)-1].ID.Name
			}
			out = append(out, Event{Loaded: &l})
		}
	}
	return out
}

// LoadedSkills returns the names of the skills that the model loaded or used in
// the current turn, in load order. A program that stores its own conversation
// records them with the model's message, as [PastMessage.LoadedSkills], for
// [Session.Restore]. Skills loaded by the program or the user are included only
// if they are used in a later turn. Pinned skills and skills for a single turn
// are never included, and neither are dependencies of an included skill. The
// result is never nil.
func (s *Session) LoadedSkills() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := slices.DeleteFunc(s.state.Active(), func(a ActiveSkill) bool {
		return a.Used != s.state.Turn || a.Retention != RetainUsed || a.Direct && a.Turn == s.state.Turn
	})
	out := []string{}
	for _, a := range used {
		if !slices.ContainsFunc(used, func(b ActiveSkill) bool { return slices.Contains(b.Needs, a.Skill.Name) }) {
			out = append(out, a.Skill.Name)
		}
	}
	return out
}
