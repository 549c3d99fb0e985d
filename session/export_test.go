package session

import (
	"context"
	"runtime"
)

// WaitForCallers returns when n callers wait for the load of ref.
func WaitForCallers(s *Session, ref string, n int) {
	for {
		s.mu.Lock()
		f := s.inflight[loadKey{ref: ref}]
		ok := f != nil && f.waiting >= n
		s.mu.Unlock()
		if ok {
			return
		}
		runtime.Gosched()
	}
}

// Turn returns the number of the current turn, or 0 before the first message.
func (s *Session) Turn() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Turn
}

// State returns a copy of the session's current state.
func (s *Session) State() State {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.state.Clone()
}

// Find returns the active skill with the given ID.
func (s *State) Find(id ID) (ActiveSkill, bool) { return s.find(id) }

// PastLoads returns the events that Restore appends to a new session.
func PastLoads(ctx context.Context, skills Skills, history []PastMessage, o *Options, text bool) ([]Event, error) {
	s, err := Open(ctx, skills, o)
	if err != nil {
		return nil, err
	}
	return s.pastLoads(ctx, history, text)
}
