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
	// Log holds the conversation so far, which may be empty; nil is a new log
	// in memory. Nothing else may append to it while the session is in use.
	Log Log
	// Tools provides the tools of skills; nil provides none.
	Tools Tools
	// RetentionTurns is the number of turns that a skill stays active after its
	// last use. 0 means [DefaultRetentionTurns], a negative number means no
	// limit.
	RetentionTurns int
	// Budget limits the tokens of all active instructions together. If a load
	// exceeds it, the least recently used skills are unloaded, except pinned
	// ones. 0 means no limit.
	Budget int
	// ID identifies the conversation, for grants that apply to it only.
	ID string
}

// DefaultRetentionTurns is the number of turns that a skill stays active
// without use.
const DefaultRetentionTurns = 5

// Session is one conversation. It is safe for concurrent use; close it when done.
type Session struct {
	log       Log
	skills    Skills
	tools     Tools
	retention int
	budget    int
	id        string

	mu       sync.Mutex // guards the fields below; held while appending, so that log and state agree
	events   []Event    // all events of the log
	state    State
	inflight map[loadKey]*inflightLoad // loads that are not decided
	closed   bool
	running  sync.WaitGroup // running loads
}

// ErrClosed is returned by operations on a closed session.
var ErrClosed = errors.New("session is closed")

// Open continues the conversation in o.Log with the skills that were active at
// its end. Their servers are started when they are needed: see [Session.Tools].
// The caller must close the session.
func Open(ctx context.Context, skills Skills, o *Options) (*Session, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Session{log: o.Log, skills: skills, tools: o.Tools, retention: cmp.Or(o.RetentionTurns, DefaultRetentionTurns), budget: o.Budget, id: o.ID, inflight: map[loadKey]*inflightLoad{}}
	if s.log == nil {
		s.log = &MemoryLog{}
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

// Close cancels loads in progress, waits for them and releases the tools of the
// active skills. The skills stay active in the log, which can be opened again.
// Close may be called more than once and does not close the log.
func (s *Session) Close() error {
	s.mu.Lock()
	s.closed = true
	for _, f := range s.inflight {
		f.cancel()
	}
	s.mu.Unlock()
	s.running.Wait()
	s.releaseTools(activeIDs(s.Active()))
	return nil
}

// Append adds events to the log and the state.
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
		case e.Compacted != nil: // skills that the summary does not include
			ended = append(ended, activeIDs(s.state.Active())...)
		}
		s.events = append(s.events, e.clone())
		s.state.Apply(e)
	}
	s.releaseTools(s.inactiveIDs(ended))
	return nil
}

// AddMessage adds a message. A message of the user begins a turn and unloads
// skills that were not used for longer than the retention.
func (s *Session) AddMessage(ctx context.Context, role Role, text string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	events := []Event{{Type: TypeMessage, Message: &Message{Role: role, Text: text}}}
	if role == RoleUser {
		events = append(events, s.expirations()...)
	}
	return s.append(ctx, events...)
}

// RecordUse records the use of an active skill: a file was read, or a script or
// tool was called. It appends at most one event per turn, and none if the skill
// is not active.
func (s *Session) RecordUse(ctx context.Context, id ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.Find(id)
	if !ok || a.Used == s.state.Turn {
		return nil
	}
	return s.append(ctx, Event{Type: TypeUsed, Used: &SkillUse{Skill: id, Retention: a.Retention}})
}

// expirations returns the unloads of skills whose retention ends with the next
// turn. A skill stays as long as one that needs it. s.mu is held.
func (s *Session) expirations() []Event {
	active := s.state.Active()
	var stay []ActiveSkill
	for _, a := range active {
		if left, bounded := s.turnsLeft(a); !bounded || left > 0 {
			stay = append(stay, a)
		}
	}
	for i := 0; i < len(stay); i++ { // add their dependencies
		for _, a := range active {
			if slices.Contains(stay[i].Needs, a.Skill.Name) && !slices.ContainsFunc(stay, func(b ActiveSkill) bool { return b.Skill == a.Skill }) {
				stay = append(stay, a)
			}
		}
	}
	var events []Event
	for _, a := range slices.Backward(active) { // dependents before their dependencies
		if !slices.ContainsFunc(stay, func(b ActiveSkill) bool { return b.Skill == a.Skill }) {
			reason := fmt.Sprintf("not used for %d turns", s.retention)
			if a.Retention == RetainOnce {
				reason = "it was for one turn"
			}
			events = append(events, Event{Type: TypeUnloaded, Unloaded: &SkillUnload{a.Skill, reason}})
		}
	}
	return events
}

// turnsLeft returns the number of turns after this one that a skill stays
// active without use. It reports false if there is no limit. s.mu is held.
func (s *Session) turnsLeft(a ActiveSkill) (turns int, bounded bool) {
	switch {
	case a.Retention == RetainPinned:
		return 0, false
	case a.Retention == RetainOnce:
		return max(a.OnceUntil-s.state.Turn, 0), true
	case s.retention < 0:
		return 0, false
	}
	return max(s.retention-(s.state.Turn-a.Used), 0), true
}

// TurnsLeft returns the number of turns after this one that a skill stays
// active without use. It reports false if there is no limit or the skill is not
// active.
func (s *Session) TurnsLeft(id ID) (turns int, bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.Find(id)
	if !ok {
		return 0, false
	}
	return s.turnsLeft(a)
}

// ID returns the ID of the options.
func (s *Session) ID() string { return s.id }

// Events returns the events after a sequence number; 0 returns all. The caller
// must not change them.
func (s *Session) Events(after int64) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clip(s.events[min(max(after, 0), int64(len(s.events))):])
}

// Active returns the active skills in load order.
func (s *Session) Active() []ActiveSkill {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Active()
}

// Turn returns the number of the current turn, 0 before the first message.
func (s *Session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Turn
}

// State returns a copy of the current state.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Clone()
}
