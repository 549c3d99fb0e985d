package chat

import (
	"context"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Line is a message in a conversation's history. An answer lists the skills that
// were loaded or used for it.
type Line struct {
	Seq   int64     `json:"seq"` // step number
	Time  time.Time `json:"time"`
	Model string    `json:"model,omitempty"`
	session.PastMessage
	Images []llm.Image `json:"images,omitempty" doc:"Images of a user's message. Their content is at /api/v1/sessions/SESSION/images/REF; to send the message again, pass their names and refs as path and sha256"`
	// Skill, After and Versions are set on the user's messages only.
	Skill    string    `json:"skill,omitempty" doc:"Skill that the user named for the message. The text then starts with / and the name of the skill; to send the message again, pass this skill, and only the rest of the text"`
	After    *int64    `json:"after,omitempty" doc:"Pass it as after of another message, which then replaces this one on a new branch. Set on messages of users"`
	Versions []Version `json:"versions,omitempty" doc:"All versions of this message including itself, oldest first; absent if there is only one"`
}

// History is a page of a conversation's messages.
type History struct {
	Messages []Line `json:"lines"`
	// Next is the step number after which the next page starts, or 0 if there is
	// no next page.
	Next int64 `json:"next,omitempty"`
	// LastEvent is the number of the last event before the history was read. Pass
	// it to [Engine.Watch] to receive everything that follows.
	LastEvent int64 `json:"told"`
	// Versions are the messages that continue the conversation on other branches
	// after the last message of the current one.
	Versions []Version `json:"versions,omitempty"`
}

// maxHistoryMessages is the maximum number of messages per page.
const maxHistoryMessages = 200

// History returns the messages on the current branch after a step, or all of them
// if after is 0. It returns up to limit messages, but no more than 200. The last
// answer of each finished turn has loaded_skills, from which
// [session.Session.Restore] computes the active skills.
func (e *Engine) History(ctx context.Context, p account.Principal, id string, after int64, limit int) (*History, error) {
	s, err := e.authorize(ctx, p, account.SessionRead, id)
	if err != nil {
		return nil, err
	}
	st, err := readState(s) // before the steps, so that they include those of all ended turns
	if err != nil {
		return nil, err
	}
	if limit <= 0 || limit > maxHistoryMessages {
		limit = maxHistoryMessages
	}
	told, err := e.db.Events.Last(ctx, eventStream(id))
	if err != nil {
		return nil, err
	}
	steps, err := readSteps(ctx, e.db.Events, id, 0) // active skills depend on all earlier steps
	if err != nil {
		return nil, err
	}
	out := &History{LastEvent: told}
	all := historyMessages(currentPath(steps))
	out.Versions = addVersions(all, steps, st.ended())
	from := slices.IndexFunc(all, func(l Line) bool { return l.Seq > after })
	if from < 0 {
		return out, nil
	}
	out.Messages = all[from:min(from+limit, len(all))]
	if from+limit < len(all) {
		out.Next = out.Messages[limit-1].Seq
	}
	return out, nil
}

// historyMessages returns the messages in a transcript. The last answer of a turn
// lists the skills that were loaded in the turn.
func historyMessages(steps []step) []Line {
	var (
		out    []Line
		state  session.State
		answer = -1 // index of the turn's last answer
		calls  = map[string]*session.PastCall{}
		named  []session.ID // skills that the user loaded for this turn
		next   []session.ID // skills that the user loaded for the next turn
	)
	note := func() {
		if answer >= 0 {
			out[answer].LoadedSkills = loadedSkills(&state, named)
		}
		answer = -1
	}
	for _, s := range steps {
		switch {
		case s.isUserMessage():
			note() // the next turn starts
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
		l := historyMessage(s)
		if s.Message.Role == llm.Assistant {
			answer = len(out)
			clear(calls) // providers reuse call IDs
			for i, c := range s.Message.Calls {
				calls[c.ID] = &l.Calls[i]
			}
		}
		out = append(out, l)
	}
	note()
	return out
}

func historyMessage(s step) Line {
	m := s.Message
	l := Line{Seq: s.Seq, Time: s.Time, Model: m.Model, Skill: s.Skill, PastMessage: session.PastMessage{Role: m.Role, Text: m.Text}, Images: m.Images}
	if m.Role == llm.Assistant {
		l.LoadedSkills = []string{}
	}
	for _, c := range m.Calls {
		l.Calls = append(l.Calls, session.PastCall{Name: c.Name, Arguments: c.Arguments})
	}
	return l
}

// loadedSkills returns the skills that the model loaded or used in the current
// turn, without those that the user named; see [session.Session.LoadedSkills].
func loadedSkills(s *session.State, named []session.ID) []string {
	used := slices.DeleteFunc(s.Active(), func(a session.ActiveSkill) bool {
		return slices.Contains(named, a.Skill) || a.Used != s.Turn || a.Retention != session.RetainUsed || a.Direct && a.Turn == s.Turn
	})
	out := []string{}
	for _, a := range used {
		if !slices.ContainsFunc(used, func(b session.ActiveSkill) bool { return slices.Contains(b.Needs, a.Skill.Name) }) {
			out = append(out, a.Skill.Name)
		}
	}
	return out
}
