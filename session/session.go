package session

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/llm"
)

// Options configures a session. The zero value is ready to use.
type Options struct {
	// Log contains the conversation so far, which may be empty; nil means a
	// new log in memory. Only the session may append to it while the session
	// is in use.
	Log Log
	// State is the state of the conversation after one of the events in Log.
	// [Open] then reads only the events that follow. The zero value reads all.
	State State
	// Tools provides the tools of the session's skills; nil means none.
	Tools Tools
	// RetentionTurns is the number of turns that a skill stays active after
	// its last use. 0 means 5, and a negative number means no limit.
	RetentionTurns int
	// Budget is the maximum number of estimated tokens in the instructions of
	// all active skills. If a load exceeds it, the least recently used skills
	// are unloaded. Pinned skills, the skills of that load and dependencies of
	// active skills stay, even if they exceed it. There is no limit if Budget
	// is 0 or negative.
	Budget int
	// Updates determines what [Session.Refresh] does with a changed skill; ""
	// means [UpdateNotify].
	Updates UpdateMode
	// ID identifies the conversation, for grants that apply only to it.
	ID string
}

// defaultRetentionTurns is the number of turns that an unused skill stays
// active if [Options.RetentionTurns] is 0.
const defaultRetentionTurns = 5

// Session is a conversation. It is safe for concurrent use. Use [Open] to create
// a Session; the caller must close it.
type Session struct {
	log       Log
	skills    Skills
	tools     Tools
	retention int
	budget    int
	updates   UpdateMode
	id        string

	mu       sync.Mutex // guards the fields below; held while appending, so that log and state agree
	events   []Event    // events of the current branch after Options.State, in order
	state    State
	inflight map[loadKey]*inflightLoad // loads whose outcome is not final
	closed   bool
	running  sync.WaitGroup // running loads
}

// ErrClosed is returned by [Session.Load] on a closed session.
var ErrClosed = errors.New("session is closed")

// Open opens the conversation in o.Log with the skills that were active at its
// end. If the conversation has branches, these are the skills of the current
// one; see [Path]. Their servers are started when they are needed; see
// [Session.Tools].
// skills may be nil if nothing is loaded, and o may be nil. Open returns an
// error only if the log cannot be read. The caller must close the session.
func Open(ctx context.Context, skills Skills, o *Options) (*Session, error) {
	if o == nil {
		o = &Options{}
	}
	s := &Session{log: o.Log, skills: skills, tools: o.Tools, retention: cmp.Or(o.RetentionTurns, defaultRetentionTurns), budget: o.Budget, updates: o.Updates, id: o.ID, inflight: map[loadKey]*inflightLoad{}}
	if s.log == nil {
		s.log = &MemoryLog{}
	}
	s.state = o.State.Clone()
	events, err := s.log.Read(ctx, s.state.Seq)
	if err == nil && branchesBefore(events, s.state.Seq) { // the state is that of another branch
		s.state = State{}
		events, err = s.log.Read(ctx, 0)
	}
	if err != nil {
		return nil, err
	}
	s.events = Path(events)
	for _, e := range s.events {
		s.state.Apply(e)
	}
	return s, nil
}

// Close cancels loads in progress, waits for them to finish and releases the
// tools of active skills. Loads then return [ErrClosed]; other methods still
// work. The skills stay active in the log, which can be opened again. Close may
// be called more than once and always returns nil. It does not close the log.
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

// Append appends events to the log and applies them to the state. It sets their
// sequence numbers and types, and their times if they are zero. Append keeps
// copies and does not modify events. If the log returns an error, Append returns
// it and the state does not change. Append refuses a [Branch]: append it to the
// log while no session is open.
func (s *Session) Append(ctx context.Context, events ...Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.append(ctx, events...)
}

func (s *Session) append(ctx context.Context, events ...Event) error {
	own := make([]Event, len(events))
	ptrs := make([]*Event, len(events))
	for i, e := range events {
		if e.Branched != nil {
			return errors.New("append events: a session cannot change its branch: close it, append the branch to the log and open the log again")
		}
		own[i] = e
		if e.Time.IsZero() {
			own[i].Time = time.Now().UTC()
		}
		own[i].SetType()
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
		case e.Compacted != nil: // the skills that are not part of the summary become inactive
			ended = append(ended, activeIDs(s.state.Active())...)
		}
		s.events = append(s.events, e.clone())
		s.state.Apply(e)
	}
	s.releaseTools(s.inactiveIDs(ended))
	return nil
}

// AddMessage appends a message with the given text and the current time. The
// role is [llm.User] or [llm.Assistant]; for any other, AddMessage returns an
// error. A user message starts a turn and unloads the skills that were unused
// for longer than their retention; it may have images. If the log returns an error,
// AddMessage returns it and nothing changes.
func (s *Session) AddMessage(ctx context.Context, role llm.Role, text string, images ...llm.Image) error {
	if role != llm.User && role != llm.Assistant {
		return fmt.Errorf("add message: invalid role %.100q: use %q or %q", role, llm.User, llm.Assistant)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	events := []Event{{Message: &Message{Role: role, Text: text, Images: images}}}
	if role == llm.User {
		events = append(events, s.expirations()...)
	}
	return s.append(ctx, events...)
}

// RecordUse records that a file, script or tool of an active skill was used. It
// appends at most one event per turn, and none if the skill is not active. It
// returns an error only if the log cannot be written.
func (s *Session) RecordUse(ctx context.Context, id ID) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.find(id)
	if !ok || a.Used == s.state.Turn {
		return nil
	}
	return s.append(ctx, Event{Used: &SkillUse{Skill: id, Retention: a.Retention}})
}

// expirations returns unload events for the skills whose retention ends with
// the next turn. A skill stays active as long as another active skill needs it.
// s.mu must be held.
func (s *Session) expirations() []Event {
	active := s.state.Active()
	var stay []ActiveSkill
	for _, a := range active {
		if left, bounded := s.turnsLeft(a); !bounded || left > 0 {
			stay = append(stay, a)
		}
	}
	for i := 0; i < len(stay); i++ { // add the dependencies
		for _, a := range active {
			if slices.Contains(stay[i].Needs, a.Skill.Name) && !slices.ContainsFunc(stay, func(b ActiveSkill) bool { return b.Skill == a.Skill }) {
				stay = append(stay, a)
			}
		}
	}
	var events []Event
	for _, a := range slices.Backward(active) { // dependents precede their dependencies
		if !slices.ContainsFunc(stay, func(b ActiveSkill) bool { return b.Skill == a.Skill }) {
			reason := fmt.Sprintf("not used for %d turns", s.retention)
			if a.Retention == RetainOnce {
				reason = "it was for one turn"
			}
			events = append(events, Event{Unloaded: &SkillUnload{a.Skill, reason}})
		}
	}
	return events
}

// turnsLeft returns the number of turns after the current one that a skill
// stays active if it is not used. bounded is false if there is no limit. s.mu
// must be held.
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

// TurnsLeft returns the number of turns after the current one that a skill
// stays active if it is not used. bounded is false if there is no limit or the
// skill is not active.
func (s *Session) TurnsLeft(id ID) (turns int, bounded bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, ok := s.state.find(id)
	if !ok {
		return 0, false
	}
	return s.turnsLeft(a)
}

// ID returns [Options.ID].
func (s *Session) ID() string { return s.id }

// Events returns the events of the current branch whose sequence number is
// greater than after, in order. If after is 0 or negative, these are all events.
// Events up to [Options.State] are returned only if State belongs to another
// branch. The caller must not modify the events.
func (s *Session) Events(after int64) []Event {
	s.mu.Lock()
	defer s.mu.Unlock()
	first, _ := slices.BinarySearchFunc(s.events, after+1, func(e Event, seq int64) int { return cmp.Compare(e.Seq, seq) })
	return slices.Clip(s.events[first:])
}

// Active returns copies of the active skills in load order.
func (s *Session) Active() []ActiveSkill {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Active()
}

// SkillsInContext returns the skills that may direct the model: the active ones, and those of
// MCP servers whose text the conversation still contains; see [State.SkillsInContext].
func (s *Session) SkillsInContext() []ActiveSkill {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.SkillsInContext()
}
