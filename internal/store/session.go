package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Session is a conversation. Its messages are in the event stream whose name is
// the session's id.
type Session struct {
	ID    string // set by Create if ""
	Owner string // a user id
	Title string
	// TitleSource says who gave the title. It is "user" in sessions of older programs.
	TitleSource string
	Agent       string // "" for the default agent
	Folder      string // id of a folder of the owner; "" for none
	Pinned      bool
	Archived    bool
	Data        json.RawMessage
	Generation  int64     // 1 at creation; incremented by each change
	LastMessage time.Time // of the user; Create sets it to Created if it is zero
	Created     time.Time
	Updated     time.Time // by Create and Update
}

const sessionColumns = "id, owner, title, title_source, agent, folder, pinned, archived, data, generation, last_message, created, updated"

func (s *Session) fields() []any {
	return []any{&s.ID, &s.Owner, &s.Title, &s.TitleSource, &s.Agent, &s.Folder, &s.Pinned, &s.Archived, (*jsonText)(&s.Data), &s.Generation, (*timestamp)(&s.LastMessage), (*timestamp)(&s.Created), (*timestamp)(&s.Updated)}
}

// Sessions stores conversations.
type Sessions struct{ c conn }

// Create adds a session and returns it as stored. It fails with [ErrExists] if
// the id is taken.
func (t Sessions) Create(ctx context.Context, s Session) (Session, error) {
	setDefaultID(&s.ID)
	setDefaultTime(&s.Created)
	if s.LastMessage.IsZero() {
		s.LastMessage = s.Created
	}
	setDefaultTime(&s.LastMessage)
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

// Update replaces a session, except its owner and the time of its creation, and
// returns the new generation. It fails with [ErrConflict] if the session no longer has the
// generation in s.
func (t Sessions) Update(ctx context.Context, s Session) (int64, error) {
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := c.exec(ctx, `UPDATE sessions SET title = $3, agent = $4, data = $5, updated = $6, folder = $7, pinned = $8, archived = $9, title_source = $10, last_message = $11, generation = generation + 1
			WHERE id = $1 AND generation = $2`, s.ID, s.Generation, s.Title, s.Agent, jsonText(s.Data), timestamp(now()), s.Folder, s.Pinned, s.Archived, s.TitleSource, timestamp(s.LastMessage))
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

// SessionQuery selects sessions for [Sessions.List].
type SessionQuery struct {
	Owner    string
	Archived bool // whether to list the archived sessions instead of the others
	// Folder is the id of a folder, whose sessions are listed. "" lists the sessions
	// of all folders and those without one.
	Folder string
	// Unfiled lists the pinned sessions and the other ones that have no folder.
	Unfiled bool
	Page
}

// List returns a user's sessions, the pinned ones first and then those with the
// latest messages, and the cursor of the next page. It omits those in [TrialAgents].
func (t Sessions) List(ctx context.Context, q SessionQuery) ([]Session, string, error) {
	query, args, err := q.sql()
	if err != nil {
		return nil, "", fmt.Errorf("list sessions of user %q: %w", q.Owner, err)
	}
	found, err := queryAll[Session](ctx, t.c, query, args...)
	if err != nil {
		return nil, "", fmt.Errorf("list sessions of user %q: %w", q.Owner, err)
	}
	found, next := cutPage(q.Page, found, func(s Session) []string {
		return []string{strconv.FormatBool(s.Pinned), strconv.FormatInt(toMillis(s.LastMessage), 10), s.ID}
	})
	return found, next, nil
}

func (q SessionQuery) sql() (string, []any, error) {
	keys, err := q.decodeCursor(3)
	if err != nil {
		return "", nil, err
	}
	where, args := "owner = $1 AND archived = $2 AND NOT EXISTS (SELECT 1 FROM trial_agents WHERE session = sessions.id)", []any{q.Owner, q.Archived, q.Size() + 1}
	if q.After != "" {
		pinned, err := strconv.ParseBool(keys[0])
		last, malformed := strconv.ParseInt(keys[1], 10, 64)
		if err != nil || malformed != nil {
			return "", nil, fmt.Errorf("%w: malformed page cursor %.20q", ErrInvalid, q.After)
		}
		where, args = where+" AND (pinned, last_message, id) < ($4, $5, $6)", append(args, pinned, last, keys[2])
	}
	switch {
	case q.Folder != "":
		args = append(args, q.Folder)
		where += fmt.Sprintf(" AND folder = $%d", len(args))
	case q.Unfiled:
		where += " AND (pinned OR folder = '')"
	}
	return "SELECT " + sessionColumns + " FROM sessions WHERE " + where + " ORDER BY pinned DESC, last_message DESC, id DESC LIMIT $3", args, nil
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
