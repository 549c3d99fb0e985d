package session

import (
	"context"
	"sync"
	"time"
)

// Session is one conversation. It is safe for concurrent use.
type Session struct {
	log    Log
	skills Skills

	mu      sync.Mutex // guards what follows; held while appending, so that log and state agree
	state   State
	flights map[string]*flight // loads that are not decided, by reference
}

// Open continues the conversation in log, which may be empty. While the session
// is in use, nothing else may append to the log.
func Open(ctx context.Context, log Log, skills Skills) (*Session, error) {
	events, err := log.Read(ctx, 0)
	if err != nil {
		return nil, err
	}
	s := &Session{log: log, skills: skills, flights: map[string]*flight{}}
	for _, e := range events {
		s.state.Apply(e)
	}
	return s, nil
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
	for _, e := range own {
		s.state.Apply(e)
	}
	return nil
}

// Say adds a message.
func (s *Session) Say(ctx context.Context, role Role, text string) error {
	return s.Append(ctx, Event{Type: TypeMessage, Message: &Message{role, text}})
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
