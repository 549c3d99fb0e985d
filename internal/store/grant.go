package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"
)

// Grant permits a principal to use an item, such as a skill or a tool, that has the
// digest Subject. Data holds the details.
type Grant struct {
	Seq       int64 // set by Put; increases with every grant
	ID        string
	Principal string
	Subject   string // digest of the item
	Name      string // name of the skill or tool
	Session   string // "" for all sessions
	Data      json.RawMessage
	Created   time.Time // set by Put if zero
	Expires   time.Time // zero for never
}

const grantColumns = "id, principal, subject, name, session, data, created, expires"

func (g *Grant) fields() []any { return append([]any{&g.Seq}, g.columns()...) }

func (g *Grant) columns() []any {
	return []any{&g.ID, &g.Principal, &g.Subject, &g.Name, &g.Session, (*jsonText)(&g.Data), (*timestamp)(&g.Created), (*timestamp)(&g.Expires)}
}

// Grants stores the grants of all principals.
type Grants struct{ c conn }

// Put stores a grant, replacing any grant with the same id.
func (t Grants) Put(ctx context.Context, g Grant) error {
	setDefaultTime(&g.Created)
	_, err := t.c.changeSecret(ctx, g.Name, func(c conn) (int64, error) {
		changed, err := c.exec(ctx, "DELETE FROM grants WHERE id = $1", g.ID)
		if err != nil {
			return 0, err
		}
		if g.Session == "" {
			changed++
		}
		return changed, c.insert(ctx, "grants", grantColumns, g.columns())
	})
	if err != nil {
		return fmt.Errorf("store grant %q: %w", g.ID, err)
	}
	return nil
}

// Find returns up to [MaxPage] grants to a principal for a subject, newest
// first. It includes only grants that are valid at the given time and apply to
// the given session or to all sessions.
func (t Grants) Find(ctx context.Context, principal, subject, session string, at time.Time) ([]Grant, error) {
	found, err := queryAll[Grant](ctx, t.c, "SELECT seq, "+grantColumns+` FROM grants WHERE subject = $1 AND principal = $2
		AND (session = '' OR session = $3) AND (expires = 0 OR expires > $4) ORDER BY seq DESC LIMIT $5`, subject, principal, session, timestamp(at), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("find grants of %q: %w", principal, err)
	}
	return found, nil
}

// Get returns up to [MaxPage] grants with the given ids, in order of creation.
// It omits missing grants.
func (t Grants) Get(ctx context.Context, ids []string) ([]Grant, error) {
	found, err := queryAll[Grant](ctx, t.c, "SELECT seq, "+grantColumns+" FROM grants WHERE id IN ("+placeholders(2, len(ids))+") ORDER BY seq LIMIT $1",
		append([]any{MaxPage}, toArgs(ids)...)...)
	if err != nil {
		return nil, fmt.Errorf("get grants: %w", err)
	}
	return found, nil
}

// List returns up to [MaxPage] grants with a Seq greater than after, sorted by
// Seq and including expired ones. If principal is not "", it returns only the
// grants to that principal.
func (t Grants) List(ctx context.Context, principal string, after int64) ([]Grant, error) {
	where, args := "seq > $1", []any{after, MaxPage}
	if principal != "" {
		where, args = where+" AND principal = $3", append(args, principal)
	}
	found, err := queryAll[Grant](ctx, t.c, "SELECT seq, "+grantColumns+" FROM grants WHERE "+where+" ORDER BY seq LIMIT $2", args...)
	if err != nil {
		return nil, fmt.Errorf("list grants: %w", err)
	}
	return found, nil
}

// Delete revokes a grant and returns it. Only one of several concurrent calls
// succeeds; the others fail with [ErrNotFound].
func (t Grants) Delete(ctx context.Context, id string) (Grant, error) {
	var gone []Grant
	_, err := t.c.changeSecrets(ctx, func(c conn) (_ int64, err error) {
		gone, err = execReturning[Grant](ctx, c, "DELETE FROM grants WHERE id = $1 RETURNING seq, "+grantColumns, id)
		if err == nil && len(gone) > 0 && strings.HasPrefix(gone[0].Name, PlatformPrefix) {
			_, err = c.incrementRevision(ctx, PlatformRevision)
		}
		return int64(len(gone)), err
	})
	if err == nil && len(gone) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Grant{}, fmt.Errorf("revoke grant %q: %w", id, err)
	}
	return gone[0], nil
}

// DeleteSame revokes a grant if its data is unchanged. Only one of several
// concurrent calls succeeds; the others fail with [ErrNotFound].
func (t Grants) DeleteSame(ctx context.Context, id string, data json.RawMessage) error {
	n, err := t.c.execSecrets(ctx, "DELETE FROM grants WHERE id = $1 AND data = $2", id, jsonText(data))
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("revoke grant %q: %w", id, err)
	}
	return nil
}

// Prune deletes grants that expired before the given time and returns their
// number.
func (t Grants) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.execSecrets(ctx, "DELETE FROM grants WHERE expires > 0 AND expires < $1", timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old grants: %w", err)
	}
	return n, nil
}
