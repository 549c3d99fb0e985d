package store

import (
	"context"
	"fmt"
)

// MaxLabel bounds the label of a message that was sent, in bytes.
const MaxLabel = 200

// Sent is a message that its client may send again.
type Sent struct {
	Session   string
	Principal string // the id of a user
	Label     string // that the client made, of one message
	Digest    string // of the message
	Input     int64  // its number in the conversation
}

const sentColumns = "session, principal, label, digest, input"

func (s *Sent) fields() []any { return []any{&s.Session, &s.Principal, &s.Label, &s.Digest, &s.Input} }

// SentMessages keeps which messages were sent, so that none is there twice. They go with
// their session.
type SentMessages struct{ c conn }

// Add notes that a message was sent. A label that the principal used in the session is
// [ErrExists], and a session that is not there [ErrNotFound].
func (t SentMessages) Add(ctx context.Context, s Sent) error {
	if err := t.c.insert(ctx, "sent", sentColumns, s.fields()); err != nil {
		return fmt.Errorf("note what was sent to session %q: %w", s.Session, parentless(err))
	}
	return nil
}

// Get returns what a principal sent to a session with a label.
func (t SentMessages) Get(ctx context.Context, session, principal, label string) (Sent, error) {
	s, err := one[Sent](ctx, t.c, "SELECT "+sentColumns+" FROM sent WHERE session = $1 AND principal = $2 AND label = $3", session, principal, label)
	if err != nil {
		return Sent{}, fmt.Errorf("what was sent to session %q: %w", session, err)
	}
	return s, nil
}
