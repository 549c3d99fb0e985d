package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Session is a conversation. What was said is in the stream of events that has its id.
type Session struct {
	ID         string // set by Create where it is ""
	Owner      string // the id of a user
	Title      string
	Agent      string // who is spoken to; "" is nobody in particular
	Data       json.RawMessage
	Generation int64 // 1 when it is made; every change adds 1
	Created    time.Time
	Updated    time.Time
}

const sessionColumns = "id, owner, title, agent, data, generation, created, updated"

func (s *Session) fields() []any {
	return []any{&s.ID, &s.Owner, &s.Title, &s.Agent, (*document)(&s.Data), &s.Generation, (*stamp)(&s.Created), (*stamp)(&s.Updated)}
}

// Sessions keeps conversations.
type Sessions struct{ c conn }

// Create adds a session and returns it as it is kept. An id that is there is
// [ErrExists].
func (t Sessions) Create(ctx context.Context, s Session) (Session, error) {
	orID(&s.ID)
	orNow(&s.Created)
	s.Updated, s.Generation = s.Created, 1
	if err := t.c.insert(ctx, "sessions", sessionColumns, s.fields()); err != nil {
		return Session{}, fmt.Errorf("add session %q: %w", s.ID, err)
	}
	return s, nil
}

// Get returns the session with an id.
func (t Sessions) Get(ctx context.Context, id string) (Session, error) {
	s, err := one[Session](ctx, t.c, "SELECT "+sessionColumns+" FROM sessions WHERE id = $1", id)
	if err != nil {
		return Session{}, fmt.Errorf("session %q: %w", id, err)
	}
	return s, nil
}

// Update replaces the title, the agent and the data of a session, where it is still
// of the generation that it was read as, and else fails with [ErrConflict]. It returns
// the new generation.
func (t Sessions) Update(ctx context.Context, s Session) (int64, error) {
	err := t.c.atomic(ctx, func(c conn) error {
		n, err := c.exec(ctx, `UPDATE sessions SET title = $3, agent = $4, data = $5, updated = $6, generation = generation + 1
			WHERE id = $1 AND generation = $2`, s.ID, s.Generation, s.Title, s.Agent, document(s.Data), stamp(now()))
		if err == nil && n == 0 {
			return c.missedGeneration(ctx, "sessions", s.ID)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("change session %q: %w", s.ID, err)
	}
	return s.Generation + 1, nil
}

// List returns the sessions of a user, those made last first, and how to ask for more.
func (t Sessions) List(ctx context.Context, owner string, p Page) ([]Session, string, error) {
	keys, err := p.keys(1)
	if err != nil {
		return nil, "", fmt.Errorf("sessions of user %q: %w", owner, err)
	}
	found, err := all[Session](ctx, t.c, "SELECT "+sessionColumns+` FROM sessions
		WHERE owner = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3`, owner, keys[0], p.limit()+1)
	if err != nil {
		return nil, "", fmt.Errorf("sessions of user %q: %w", owner, err)
	}
	found, next := cut(p, found, func(s Session) []string { return []string{s.ID} })
	return found, next, nil
}

// Delete removes a session with its events, asks, grants, files and lease.
func (t Sessions) Delete(ctx context.Context, id string) error {
	err := t.c.atomic(ctx, func(c conn) error {
		for _, query := range []string{
			"DELETE FROM events WHERE stream = $1",
			"DELETE FROM asks WHERE session = $1",
			"DELETE FROM leases WHERE name = $1",
			"DELETE FROM grants WHERE session = $1",
		} {
			if _, err := c.exec(ctx, query, id); err != nil {
				return err
			}
		}
		return c.mustChange(ctx, "DELETE FROM sessions WHERE id = $1", id)
	})
	if err != nil {
		return fmt.Errorf("delete session %q: %w", id, err)
	}
	return nil
}
