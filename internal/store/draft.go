package store

import (
	"context"
	"fmt"
)

// Draft is a skill that is tried in a conversation. It never changes.
type Draft struct {
	Session string
	Name    string
	Digest  string // of its files
}

const draftColumns = "session, name, digest"

func (d *Draft) fields() []any { return []any{&d.Session, &d.Name, &d.Digest} }

// Drafts keeps skills that are tried, one of a session. They go with it.
type Drafts struct{ c conn }

// Add keeps the draft of a session with its package: at most [MaxValue] bytes. A session
// that has one is [ErrExists], and one that is not there [ErrNotFound].
func (t Drafts) Add(ctx context.Context, d Draft, pkg []byte) error {
	if len(pkg) > MaxValue {
		return fmt.Errorf("keep the draft %.200q: %w: its package has %d bytes, more than %d", d.Name, ErrInvalid, len(pkg), MaxValue)
	}
	if err := t.c.insert(ctx, "drafts", draftColumns+", package", append(d.fields(), pkg)); err != nil {
		return fmt.Errorf("keep the draft %.200q: %w", d.Name, parentless(err))
	}
	return nil
}

// Amount is how much is kept of something.
type Amount struct{ Count, Bytes int64 }

func (a *Amount) fields() []any { return []any{&a.Count, &a.Bytes} }

// Of returns how many drafts the sessions of a user have, and of how many bytes.
func (t Drafts) Of(ctx context.Context, owner string) (Amount, error) {
	a, err := one[Amount](ctx, t.c, `SELECT COUNT(*), CAST(COALESCE(SUM(octet_length(d.package)), 0) AS BIGINT)
		FROM drafts d JOIN sessions s ON s.id = d.session WHERE s.owner = $1`, owner)
	if err != nil {
		return Amount{}, fmt.Errorf("drafts of user %q: %w", owner, err)
	}
	return a, nil
}

// Get returns the draft of a session, without its package.
func (t Drafts) Get(ctx context.Context, session string) (Draft, error) {
	d, err := one[Draft](ctx, t.c, "SELECT "+draftColumns+" FROM drafts WHERE session = $1", session)
	if err != nil {
		return Draft{}, fmt.Errorf("draft of session %q: %w", session, err)
	}
	return d, nil
}

// Package returns the package of the draft of a session.
func (t Drafts) Package(ctx context.Context, session string) ([]byte, error) {
	data, err := scalar[[]byte](ctx, t.c, "SELECT package FROM drafts WHERE session = $1", session)
	if err != nil {
		return nil, fmt.Errorf("package of the draft of session %q: %w", session, err)
	}
	return data, nil
}
