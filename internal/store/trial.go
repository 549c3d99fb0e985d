package store

import (
	"context"
	"fmt"
	"time"
)

// TrialAgents stores the documents of agents that users try in a conversation
// before they save them, at most once per session. Deleting a session deletes its
// documents. [Sessions.List] omits such sessions.
type TrialAgents struct{ c conn }

// Add stores documents of up to [MaxValue] bytes for a session. It fails with
// [ErrExists] if the session already has documents, and with [ErrNotFound] if the
// session does not exist.
func (t TrialAgents) Add(ctx context.Context, session string, documents []byte) error {
	if len(documents) > MaxValue {
		return fmt.Errorf("store documents of session %q: %w: %d bytes, limit %d", session, ErrInvalid, len(documents), MaxValue)
	}
	if err := t.c.insert(ctx, "trial_agents", "session, documents", []any{session, documents}); err != nil {
		return fmt.Errorf("store documents of session %q: %w", session, toNotFound(err))
	}
	return nil
}

// Documents returns the documents of a session.
func (t TrialAgents) Documents(ctx context.Context, session string) ([]byte, error) {
	data, err := queryScalar[[]byte](ctx, t.c, "SELECT documents FROM trial_agents WHERE session = $1", session)
	if err != nil {
		return nil, fmt.Errorf("read documents of session %q: %w", session, err)
	}
	return data, nil
}

// List returns up to [MaxPage] of a user's sessions with documents, newest first.
func (t TrialAgents) List(ctx context.Context, owner string) ([]Session, error) {
	found, err := queryAll[Session](ctx, t.c, "SELECT "+sessionColumns+` FROM sessions
		WHERE owner = $1 AND id IN (SELECT session FROM trial_agents) ORDER BY id DESC LIMIT $2`, owner, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list trials of user %q: %w", owner, err)
	}
	return found, nil
}

// ListUnchanged returns up to [MaxPage] sessions with documents that have not changed
// since the given time.
func (t TrialAgents) ListUnchanged(ctx context.Context, since time.Time) ([]Session, error) {
	found, err := queryAll[Session](ctx, t.c, "SELECT "+sessionColumns+` FROM sessions
		WHERE id IN (SELECT session FROM trial_agents) AND updated < $1 ORDER BY id LIMIT $2`, timestamp(since), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list old trials: %w", err)
	}
	return found, nil
}
