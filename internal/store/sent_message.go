package store

import (
	"context"
	"fmt"
)

// MaxLabel is the maximum length of a sent message's label, in bytes.
const MaxLabel = 200

// SentMessage records that a client sent a message, so that a repeated message
// is not added twice.
type SentMessage struct {
	Session   string
	Principal string // a user id
	Label     string // chosen by the client, unique for each message
	Digest    string // digest of the message
	Input     int64  // number of the input in the conversation
}

const sentColumns = "session, principal, label, digest, input"

func (s *SentMessage) fields() []any {
	return []any{&s.Session, &s.Principal, &s.Label, &s.Digest, &s.Input}
}

// SentMessages stores records of sent messages. Deleting a session deletes its
// records.
type SentMessages struct{ c conn }

// Add records a sent message. It fails with [ErrExists] if the principal has
// already used the label in the session, and with [ErrNotFound] if the session
// does not exist.
func (t SentMessages) Add(ctx context.Context, s SentMessage) error {
	if err := t.c.insert(ctx, "sent", sentColumns, s.fields()); err != nil {
		return fmt.Errorf("record message to session %q: %w", s.Session, toNotFound(err))
	}
	return nil
}

// Get returns the message that a principal sent to a session with the given
// label.
func (t SentMessages) Get(ctx context.Context, session, principal, label string) (SentMessage, error) {
	s, err := queryOne[SentMessage](ctx, t.c, "SELECT "+sentColumns+" FROM sent WHERE session = $1 AND principal = $2 AND label = $3", session, principal, label)
	if err != nil {
		return SentMessage{}, fmt.Errorf("get message to session %q: %w", session, err)
	}
	return s, nil
}
