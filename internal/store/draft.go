package store

import (
	"context"
	"fmt"
)

// Draft is an unpublished skill that a user tests in a conversation. It is
// immutable.
type Draft struct {
	Session string
	Name    string
	Digest  string // digest of its files
}

const draftColumns = "session, name, digest"

func (d *Draft) fields() []any { return []any{&d.Session, &d.Name, &d.Digest} }

// Drafts stores drafts, at most one per session. Deleting a session deletes its
// draft.
type Drafts struct{ c conn }

// Add stores a session's draft and its package of up to [MaxValue] bytes. It
// fails with [ErrExists] if the session already has a draft, and with
// [ErrNotFound] if the session does not exist.
func (t Drafts) Add(ctx context.Context, d Draft, pkg []byte) error {
	if len(pkg) > MaxValue {
		return fmt.Errorf("store draft %.200q: %w: package has %d bytes, limit %d", d.Name, ErrInvalid, len(pkg), MaxValue)
	}
	if err := t.c.insert(ctx, "drafts", draftColumns+", package", append(d.fields(), pkg)); err != nil {
		return fmt.Errorf("store draft %.200q: %w", d.Name, toNotFound(err))
	}
	return nil
}

// Amount is a number of items and their total size.
type Amount struct{ Count, Bytes int64 }

func (a *Amount) fields() []any { return []any{&a.Count, &a.Bytes} }

// Total returns the number and total size of the drafts in all of a user's
// sessions.
func (t Drafts) Total(ctx context.Context, owner string) (Amount, error) {
	a, err := queryOne[Amount](ctx, t.c, `SELECT COUNT(*), CAST(COALESCE(SUM(octet_length(d.package)), 0) AS BIGINT)
		FROM drafts d JOIN sessions s ON s.id = d.session WHERE s.owner = $1`, owner)
	if err != nil {
		return Amount{}, fmt.Errorf("count drafts of user %q: %w", owner, err)
	}
	return a, nil
}

// Get returns a session's draft, without its package.
func (t Drafts) Get(ctx context.Context, session string) (Draft, error) {
	d, err := queryOne[Draft](ctx, t.c, "SELECT "+draftColumns+" FROM drafts WHERE session = $1", session)
	if err != nil {
		return Draft{}, fmt.Errorf("get draft of session %q: %w", session, err)
	}
	return d, nil
}

// Package returns the package of a session's draft.
func (t Drafts) Package(ctx context.Context, session string) ([]byte, error) {
	data, err := queryScalar[[]byte](ctx, t.c, "SELECT package FROM drafts WHERE session = $1", session)
	if err != nil {
		return nil, fmt.Errorf("read draft of session %q: %w", session, err)
	}
	return data, nil
}
