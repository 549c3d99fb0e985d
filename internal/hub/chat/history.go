package chat

import (
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/session"
)

// Line is a message of a conversation, as another program takes it: an answer has the
// names of the skills that were loaded or used for it.
type Line struct {
	Seq   int64     `json:"seq"` // of the step
	Time  time.Time `json:"time"`
	Model string    `json:"model,omitempty"`
	session.Past
}

// History is a part of what was said.
type History struct {
	Lines []Line `json:"lines"`
	// Next is the number after which there is more, 0 where there is none.
	Next int64 `json:"next,omitempty"`
	// Told is the number of the last event that was told before it was read: who
	// watches from there sees all that is not in the history.
	Told int64 `json:"told"`
}

// maxLines bounds the lines of one part.
const maxLines = 200

// History returns what was said after a step, 0 for the beginning, at most limit lines
// and no more than 200. The last answer of each turn that is over has its
// loaded_skills, from which [session.Restore] makes what was in force.
func (e *Engine) History(ctx context.Context, p account.Principal, id string, after int64, limit int) (*History, error) {
	if _, err := e.may(ctx, p, account.SessionRead, id); err != nil {
		return nil, err
	}
	if limit <= 0 || limit > maxLines {
		limit = maxLines
	}
	told, err := e.db.Events.Last(ctx, toldOf(id))
	if err != nil {
		return nil, err
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0) // what is in force depends on all before
	if err != nil {
		return nil, err
	}
	out := &History{Told: told}
	all := lines(steps)
	from := slices.IndexFunc(all, func(l Line) bool { return l.Seq > after })
	if from < 0 {
		return out, nil
	}
	out.Lines = all[from:min(from+limit, len(all))]
	if from+limit < len(all) {
		out.Next = out.Lines[limit-1].Seq
	}
	return out, nil
}

// lines are the messages of a transcript. What was loaded in a turn is noted with its
// last answer (W13).
func lines(steps []step) []Line {
	var (
		out    []Line
		state  session.State
		answer = -1 // the last of the turn
		calls  = map[string]*session.PastCall{}
		named  []session.ID // that the person loaded for the turn
		next   []session.ID // likewise, for the turn that is to come
	)
	note := func() {
		if answer >= 0 {
			out[answer].LoadedSkills = loadedSkills(&state, named)
		}
		answer = -1
	}
	for _, s := range steps {
		switch {
		case s.Message != nil && s.Message.Role == session.RoleUser:
			note() // before its turn is another one
			named, next = next, nil
		case s.Loaded != nil && s.Loaded.Direct:
			next = append(next, s.Loaded.Skill)
		}
		state.Apply(s.Event)
		if r := s.Result; r != nil && calls[r.Call] != nil {
			calls[r.Call].Error = r.Error
		}
		if s.Message == nil {
			continue
		}
		l := line(s)
		if s.Message.Role == session.RoleAssistant {
			answer = len(out)
			clear(calls) // vendors use IDs of calls again
			for i, c := range s.Message.Calls {
				calls[c.ID] = &l.Calls[i]
			}
		}
		out = append(out, l)
	}
	note()
	return out
}

func line(s step) Line {
	m := s.Message
	l := Line{Seq: s.Seq, Time: s.Time, Model: m.Model, Past: session.Past{Role: m.Role, Text: m.Text}}
	if m.Role == session.RoleAssistant {
		l.LoadedSkills = []string{}
	}
	for _, c := range m.Calls {
		l.Calls = append(l.Calls, session.PastCall{Name: c.Name, Arguments: c.Arguments})
	}
	return l
}

// loadedSkills are the skills that the model loaded or used in the turn that is now: see
// [session.Session.LoadedSkills]. Those that the person named for it are not (W14).
func loadedSkills(s *session.State, named []session.ID) []string {
	used := slices.DeleteFunc(s.Active(), func(a session.Active) bool {
		return slices.Contains(named, a.Skill) || a.Used != s.Turn || a.Keep != session.KeepUsed || a.Direct && a.Turn == s.Turn
	})
	out := []string{}
	for _, a := range used {
		if !slices.ContainsFunc(used, func(b session.Active) bool { return slices.Contains(b.Needs, a.Skill.Name) }) {
			out = append(out, a.Skill.Name)
		}
	}
	return out
}
