package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Session is a conversation. Its messages are in the event stream whose name is
// the session's id.
type Session struct {
	ID         string // set by Create if ""
	Owner      string // a user id
	Title      string
	Agent      string // "" for the default agent
	Data       json.RawMessage
	Generation int64 // 1 at creation; incremented by each change
	Created    time.Time
	Updated    time.Time
}

const sessionColumns = "id, owner, title, agent, data, generation, created, updated"

func (s *Session) fields() []any {
	return []any{&s.ID, &s.Owner, &s.Title, &s.Agent, (*jsonText)(&s.Data), &s.Generation, (*timestamp)(&s.Created), (*timestamp)(&s.Updated)}
}

// Sessions stores conversations.
type Sessions struct{ c conn }

// Create adds a session and returns it as stored. It fails with [ErrExists] if
// the id is taken.
func (t Sessions) Create(ctx context.Context, s Session) (Session, error) {
	setDefaultID(&s.ID)
	setDefaultTime(&s.Created)
	s.Updated, s.Generation = s.Created, 1
	if err := t.c.insert(ctx, "sessions", sessionColumns, s.fields()); err != nil {
		return Session{}, fmt.Errorf("add session %q: %w", s.ID, err)
	}
	return s, nil
}

// Get returns the session with the given id.
func (t Sessions) Get(ctx context.Context, id string) (Session, error) {
	s, err := queryOne[Session](ctx, t.c, "SELECT "+sessionColumns+" FROM sessions WHERE id = $1", id)
	if err != nil {
		return Session{}, fmt.Errorf("get session %q: %w", id, err)
	}
	return s, nil
}

// Update replaces a session's title, agent and data and returns the new
// generation. It fails with [ErrConflict] if the session no longer has the
// generation in s.
func (t Sessions) Update(ctx context.Context, s Session) (int64, error) {
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := c.exec(ctx, `UPDATE sessions SET title = $3, agent = $4, data = $5, updated = $6, generation = generation + 1
			WHERE id = $1 AND generation = $2`, s.ID, s.Generation, s.Title, s.Agent, jsonText(s.Data), timestamp(now()))
		if err == nil && n == 0 {
			return c.generationConflict(ctx, "sessions", s.ID)
		}
		return err
	})
	if err != nil {
		return 0, fmt.Errorf("change session %q: %w", s.ID, err)
	}
	return s.Generation + 1, nil
}

// List returns a user's sessions, newest first, and the cursor of the next
// page.
func (t Sessions) List(ctx context.Context, owner string, p Page) ([]Session, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list sessions of user %q: %w", owner, err)
	}
	found, err := queryAll[Session](ctx, t.c, "SELECT "+sessionColumns+` FROM sessions
		WHERE owner = $1 AND ($2 = '' OR id < $2) ORDER BY id DESC LIMIT $3`, owner, keys[0], p.Size()+1)
	if err != nil {
		return nil, "", fmt.Errorf("list sessions of user %q: %w", owner, err)
	}
	found, next := cutPage(p, found, func(s Session) []string { return []string{s.ID} })
	return found, next, nil
}

// Delete deletes a session with its events, approval requests, grants, secrets,
// files, shares and lease.
func (t Sessions) Delete(ctx context.Context, id string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		for _, query := range []string{
			"DELETE FROM events WHERE stream = $1",
			"DELETE FROM stream_sizes WHERE session = $1 AND stream = $1",
			"DELETE FROM asks WHERE session = $1",
			"DELETE FROM leases WHERE name = $1",
			"DELETE FROM grants WHERE session = $1",
			"DELETE FROM secrets WHERE owner = 'session:' || $1",
		} {
			if _, err := c.exec(ctx, query, id); err != nil {
				return err
			}
		}
		return c.execAffecting(ctx, "DELETE FROM sessions WHERE id = $1", id)
	})
	if err != nil {
		return fmt.Errorf("delete session %q: %w", id, err)
	}
	return nil
}
