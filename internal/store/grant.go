package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Grant is leave that a person gave a principal to use a subject, as it is kept: what
// it allows is in Data.
type Grant struct {
	Seq       int64 // set by Put: a grant given later has a bigger one
	ID        string
	Principal string
	Subject   string // a digest
	Name      string // of the skill or tool
	Session   string // "" is all
	Data      json.RawMessage
	Created   time.Time // set by Put where it is zero
	Expires   time.Time // zero is never
}

const grantColumns = "id, principal, subject, name, session, data, created, expires"

func (g *Grant) fields() []any { return append([]any{&g.Seq}, g.columns()...) }

func (g *Grant) columns() []any {
	return []any{&g.ID, &g.Principal, &g.Subject, &g.Name, &g.Session, (*document)(&g.Data), (*stamp)(&g.Created), (*stamp)(&g.Expires)}
}

// Grants keeps leave that was given.
type Grants struct{ c conn }

// Put keeps a grant given now, in place of that with its id.
func (t Grants) Put(ctx context.Context, g Grant) error {
	orNow(&g.Created)
	err := t.c.atomic(ctx, func(c conn) error {
		if _, err := c.exec(ctx, "DELETE FROM grants WHERE id = $1", g.ID); err != nil {
			return err
		}
		return c.insert(ctx, "grants", grantColumns, g.columns())
	})
	if err != nil {
		return fmt.Errorf("keep grant %q: %w", g.ID, err)
	}
	return nil
}

// Find returns the grants for a principal and a subject, in any session and in that
// which is named, that have not expired by then, the one given last first: at most
// [MaxPage].
func (t Grants) Find(ctx context.Context, principal, subject, session string, at time.Time) ([]Grant, error) {
	found, err := all[Grant](ctx, t.c, "SELECT seq, "+grantColumns+` FROM grants WHERE subject = $1 AND principal = $2
		AND (session = '' OR session = $3) AND (expires = 0 OR expires > $4) ORDER BY seq DESC LIMIT $5`, subject, principal, session, stamp(at), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("grants of %q: %w", principal, err)
	}
	return found, nil
}

// List returns the grants of a principal, "" for those of all, in the order in which
// they were given, expired ones too, that come after a number: at most [MaxPage].
func (t Grants) List(ctx context.Context, principal string, after int64) ([]Grant, error) {
	where, args := "seq > $1", []any{after, MaxPage}
	if principal != "" {
		where, args = where+" AND principal = $3", append(args, principal)
	}
	found, err := all[Grant](ctx, t.c, "SELECT seq, "+grantColumns+" FROM grants WHERE "+where+" ORDER BY seq LIMIT $2", args...)
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return found, nil
}

// Delete withdraws the grant with an id and returns it. Of any number at the same
// time one gets it, and the others [ErrNotFound].
func (t Grants) Delete(ctx context.Context, id string) (Grant, error) {
	gone, err := changed[Grant](ctx, t.c, "DELETE FROM grants WHERE id = $1 RETURNING seq, "+grantColumns, id)
	if err == nil && len(gone) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Grant{}, fmt.Errorf("withdraw grant %q: %w", id, err)
	}
	return gone[0], nil
}

// DeleteFor withdraws all grants for a subject, whoever has them, and returns how
// many.
func (t Grants) DeleteFor(ctx context.Context, subject string) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM grants WHERE subject = $1", subject)
	if err != nil {
		return 0, fmt.Errorf("withdraw the grants for %q: %w", subject, err)
	}
	return n, nil
}

// Prune forgets the grants that expired before a time, and returns how many.
func (t Grants) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM grants WHERE expires > 0 AND expires < $1", stamp(before))
	if err != nil {
		return 0, fmt.Errorf("forget old grants: %w", err)
	}
	return n, nil
}
