package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// Options adjust a session. The zero value is ready to use.
type Options struct {
	// Log has the conversation so far, which may be none; nil is a new one that
	// ends with the process. While the session is in use, nothing else may append
	// to it.
	Log Log
	// Tools brings the tools of skills; nil brings none.
	Tools Tools
	// Retention says for how many turns after its last use a skill stays in force;
	// 0 is [DefaultRetention], less is for good.
	Retention int
	// Budget bounds the tokens of all instructions in force together: where a load
	// goes beyond it, what was used least recently goes out of force, but for what is
	// pinned. 0 is no bound.
	Budget int
	// ID names the conversation, for grants that are given for it.
	ID string
}

// DefaultRetention is the number of turns that a skill stays in force without
// being used.
const DefaultRetention = 5

// Session is one conversation. It is safe for concurrent use; close it when done.
type Session struct {
	log       Log
	skills    Skills
	tools     Tools
	retention int
	budget    int
	id        string

	mu      sync.Mutex // guards what follows; held while appending, so that log and state agree
	events  []Event    // all of the log
	state   State
	flights map[flightKey]*flight // loads that are not decided
	closed  bool
	running sync.WaitGroup // loads
}

// ErrClosed says that the session was closed.
var ErrClosed = errors.New("the session is closed")

// Open continues the conversation in the log of the options, with the skills that
// were in force at its end. Nothing of them is started before it is needed: see
// [Session.Tools].
func Open(ctx context.Context, skills Skills, o *Options) (*Session, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Session{log: o.Log, skills: skills, tools: o.Tools, retention: cmp.Or(o.Retention, DefaultRetention), budget: o.Budget, id: o.ID, flights: map[flightKey]*flight{}}
	if s.log == nil {
		s.log = &Memory{}
	}
	events, err := s.log.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	s.events = events
	for _, e := range events {
		s.state.Apply(e)
	}
	return s, nil
}

// Close ends loads that are on their way, waits for them, and releases what the
// skills in force brought. They stay in force: the log can be opened again. It is
// safe to call twice.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.flights {
		f.cancel()
	}
	s.mu.Unlock()
	s.running.Wait()
	s.release(ids(s.Active()))
	return nil
}

// Append adds events to the log and to the state.
func (s *Session) Append(ctx context.Context, events ...Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(ctx, events...)
}

func (s *Session) append(ctx context.Context, events ...Event) error {
	own := make([]Event, len(events))
	ptrs := make([]*Event, len(events))
	for i, e := range events {
		own[i] = e
		if e.Time.IsZero() {
			own[i].Time = time.Now().UTC()
		}
		ptrs[i] = &own[i]
	}
	if err := s.log.Append(ctx, ptrs...); err != nil {
		return err
	}
	var ended []ID
	for _, e := range own {
		switch {
		case e.Unloaded != nil:
			ended = append(ended, e.Unloaded.Skill)
		case e.Compacted != nil: // what it does not carry on
			ended = append(ended, ids(s.state.Active())...)
		}
		s.events = append(s.events, e.clone())
		s.state.Apply(e)
	}
	s.release(s.without(ended))
	return nil
}

// Say adds a message. One of a person begins a turn, with which skills go out of
// force that were not used for long enough.
func (s *Session) Say(ctx context.Context, role Role, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := []Event{{Type: TypeMessage, Message: &Message{Role: role, Text: text}}}
	if role == RoleUser {
		events = append(events, s.expired()...)
	}
	return s.append(ctx, events...)
}

// Use notes that a skill in force is used: a file of it is read, or a script or
// tool of it is called. It says so once a turn; for one that is not in force it
// does nothing.
func (s *Session) Use(ctx context.Context, id ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.Find(id)
	if !ok || a.Used == s.state.Turn {
		return nil
	}
	return s.append(ctx, Event{Type: TypeUsed, Used: &Used{Skill: id, Keep: a.Keep}})
}

// expired are the ends of skills whose time is over with the turn to come. One
// that another needs stays as long as that. s.mu is held.
func (s *Session) expired() []Event {
	active := s.state.Active()
	var stay []Active
	for _, a := range active {
		if left, bounded := s.left(a); !bounded || left > 0 {
			stay = append(stay, a)
		}
	}
	for i := 0; i < len(stay); i++ { // and what they need
		for _, a := range active {
			if slices.Contains(stay[i].Needs, a.Skill.Name) && !slices.ContainsFunc(stay, func(b Active) bool { return b.Skill == a.Skill }) {
				stay = append(stay, a)
			}
		}
	}
	var events []Event
	for _, a := range slices.Backward(active) { // those that need others first
		if !slices.ContainsFunc(stay, func(b Active) bool { return b.Skill == a.Skill }) {
			reason := fmt.Sprintf("not used for %d turns", s.retention)
			if a.Keep == KeepOnce {
				reason = "it was for one turn"
			}
			events = append(events, Event{Type: TypeUnloaded, Unloaded: &Unloaded{a.Skill, reason}})
		}
	}
	return events
}

// left is for how many turns after this one a skill stays in force without being
// used, where that is bounded. s.mu is held.
func (s *Session) left(a Active) (turns int, bounded bool) {
	switch {
	case a.Keep == KeepPinned:
		return 0, false
	case a.Keep == KeepOnce:
		return max(a.Once-s.state.Turn, 0), true
	case s.retention < 0:
		return 0, false
	}
	return max(s.retention-(s.state.Turn-a.Used), 0), true
}

// Left is for how many turns after this one a skill in force stays so without being
// used; bounded is false where it does for good, or is not in force.
func (s *Session) Left(id ID) (turns int, bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.Find(id)
	if !ok {
		return 0, false
	}
	return s.left(a)
}

// ID is that of the options.
func (s *Session) ID() string { return s.id }

// Events are those after a sequence number, 0 for all. Do not change them.
func (s *Session) Events(after int64) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.events[min(max(after, 0), int64(len(s.events))):])
}

// Active returns the skills in force in the order in which they were loaded.
func (s *Session) Active() []Active {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Active()
}

// Turn is the number of the current turn, 0 before the first message.
func (s *Session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Turn
}

// State returns what the conversation amounts to now.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Clone()
}
