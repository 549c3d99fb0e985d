package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
)

// Past is a message of a conversation that another program kept.
type Past struct {
	// Role is [RoleUser], [RoleAssistant], or what else the program had.
	Role Role   `json:"role"`
	Text string `json:"text,omitempty"`
	// LoadedSkills are the names of skills that the program noted with an answer of
	// the model: see [Session.LoadedSkills]. It is nil where it noted nothing.
	LoadedSkills []string `json:"loaded_skills"`
	// Calls are the tools that an answer called.
	Calls []PastCall `json:"calls,omitempty"`
}

// PastCall is a call of a tool in a conversation that another program kept.
type PastCall struct {
	Name      string `json:"name"`
	Arguments string `json:"arguments"` // a JSON object
	Error     bool   `json:"error,omitempty"`
}

// RestoreOptions adjust what is restored. The zero value is ready to use.
type RestoreOptions struct {
	// Retention and Budget are those of the session: see [Options].
	Retention int
	Budget    int
	// Text also reads what the model wrote, where nothing in the history says in
	// another way which skills were loaded: a line of its own that says that a skill
	// was loaded, not quoted and not in code.
	Text bool
}

// Bounds of what is restored.
const (
	maxTried  = 64  // names that are looked up
	maxName   = 256 // bytes of a name
	maxText   = 64 << 10
	maxObject = 64 << 10 // bytes of the arguments of a call
)

// Restore returns the loads that stand for a conversation that another program
// kept: of each skill that would still be in force, with those it needs, in the
// order in which they were used last. They are to be appended to a new log before
// the message that is to be answered. A conversation of our own needs none: its log
// says it.
//
// What counts are the skills noted with the answers of the last turns, and where a
// turn has no note, its calls of load_skill, activate_skill and read_skill. A turn is
// one or more messages of a person and an answer, whatever is between them; messages
// at the end that have no answer begin none. A name that no skill answers to is
// passed over, as is a skill that has no instructions or that only a person may load.
//
// The loads are [Loaded.Direct]: their texts, as they are now, are told where the
// events are. Set it to false where the log has the texts already.
//
// An error says what could not be read; the events are good for the rest. Where ctx
// ends, there are none.
func Restore(ctx context.Context, skills Skills, history []Past, o *RestoreOptions) ([]Event, error) {
	if o == nil {
		o = &RestoreOptions{}
	}
	r := restoration{budget: o.Budget, unused: map[string]int{}, asked: map[string]bool{}}
	var problems []error
	for _, l := range lastLoads(history, cmp.Or(o.Retention, DefaultRetention), o.Text) {
		all, err := skills.Fetch(ctx, l.name)
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

// restoration collects skills, the one that was used last first.
type restoration struct {
	budget int
	total  int
	groups [][]*Material   // each a skill after those it needs
	unused map[string]int  // turns since the last use, by the key of the skill
	asked  map[string]bool // keys of skills that were loaded for themselves
}

// add reports false where the skill is beyond the budget, and with it all that were
// used before.
func (r *restoration) add(all []*Material, ago int) bool {
	if len(all) == 0 {
		return true
	}
	main := all[len(all)-1]
	if main.Hidden || Body(main) == "" {
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
	r.asked[main.ID.Key()] = true
	for _, m := range all {
		if _, ok := r.unused[m.ID.Key()]; !ok {
			r.unused[m.ID.Key()] = ago
		}
	}
	return true
}

// events are the loads, what was used last at the end.
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
			l := Loaded{Skill: m.ID, Title: m.called(), Digest: m.Digest, Version: m.Version, Text: Render(m), Files: m.Files, Tokens: m.Tokens, Needs: m.Needs,
				Direct: true, AllowedTools: m.AllowedTools, Model: m.Model, Unused: r.unused[key]}
			if !r.asked[key] {
				l.For = all[len(all)-1].ID.Name
			}
			out = append(out, Event{Type: TypeLoaded, Loaded: &l})
		}
	}
	return out
}

// Restore appends the loads that stand for a conversation that another program kept,
// but for what is in force already: see the function [Restore], whose errors it
// returns. Retention and budget are the session's; a nil o is the zero value.
func (s *Session) Restore(ctx context.Context, history []Past, o *RestoreOptions) error {
	own := RestoreOptions{Retention: s.retention, Budget: s.budget}
	if o != nil {
		own.Text = o.Text
	}
	loads, problem := Restore(ctx, s.skills, history, &own)
	s.mu.Lock()
	defer s.mu.Unlock()
	loads = slices.DeleteFunc(loads, func(e Event) bool {
		_, ok := s.state.Find(e.Loaded.Skill)
		return ok
	})
	if len(loads) == 0 {
		return problem
	}
	return errors.Join(problem, s.append(ctx, loads...))
}

// LoadedSkills are the names of the skills that the model loaded or used in the turn
// that is now, in the order of loading: what a program that keeps its conversation by
// itself notes with the answer, so that [Restore] finds it ([Past.LoadedSkills]). What
// the program or a person loaded is not among them unless it is used in a later turn;
// what is pinned, or kept for one turn, never is, and what comes with another of them
// needs no note.
func (s *Session) LoadedSkills() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	used := slices.DeleteFunc(s.state.Active(), func(a Active) bool {
		return a.Used != s.state.Turn || a.Keep != KeepUsed || a.Direct && a.Turn == s.state.Turn
	})
	out := []string{}
	for _, a := range used {
		if !slices.ContainsFunc(used, func(b Active) bool { return slices.Contains(b.Needs, a.Skill.Name) }) {
			out = append(out, a.Skill.Name)
		}
	}
	return out
}
