package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// SignIn is a user who is signed in to an MCP server. What he was given only who has the
// key can read.
type SignIn struct {
	UserID string
	Server []byte // the hash of which one
	Sealed []byte
	KeyID  string // by which it was sealed
	Began  time.Time
}

const signInColumns = "user_id, server, sealed, key_id, began"

func (s *SignIn) fields() []any {
	return []any{&s.UserID, &s.Server, &s.Sealed, &s.KeyID, (*stamp)(&s.Began)}
}

// Attempt is a sign-in to an MCP server that was begun.
type Attempt struct {
	State   []byte // the hash of it
	UserID  string
	Browser []byte // the hash of what its cookie has
	Sealed  []byte
}

func (a *Attempt) fields() []any { return []any{&a.State, &a.UserID, &a.Browser, &a.Sealed} }

const attemptColumns = "state, user_id, browser, sealed"

// SignIns keeps who is signed in to which MCP server.
type SignIns struct{ c conn }

// Put keeps a sign-in in place of that of its user and server, of which Began stays.
func (t SignIns) Put(ctx context.Context, s SignIn) error {
	if len(s.Sealed) == 0 || len(s.Sealed) > MaxSealed {
		return fmt.Errorf("keep a sign-in: %w: it has %d bytes", ErrInvalid, len(s.Sealed))
	}
	s.Began = now()
	_, err := t.c.exec(ctx, "INSERT INTO signins ("+signInColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (user_id, server) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id`, s.fields()...)
	if err != nil {
		return fmt.Errorf("keep a sign-in: %w", parentless(err))
	}
	return nil
}

// Begun notes that a user signed in anew.
func (t SignIns) Begun(ctx context.Context, userID string, server []byte) error {
	if err := t.c.mustChange(ctx, "UPDATE signins SET began = $3 WHERE user_id = $1 AND server = $2", userID, server, stamp(now())); err != nil {
		return fmt.Errorf("note a sign-in: %w", err)
	}
	return nil
}

// Get returns the sign-in of a user to a server.
func (t SignIns) Get(ctx context.Context, userID string, server []byte) (SignIn, error) {
	s, err := one[SignIn](ctx, t.c, "SELECT "+signInColumns+" FROM signins WHERE user_id = $1 AND server = $2", userID, server)
	if err != nil {
		return SignIn{}, fmt.Errorf("sign-in: %w", err)
	}
	return s, nil
}

// Of returns the sign-ins of a user, at most [MaxPage].
func (t SignIns) Of(ctx context.Context, userID string) ([]SignIn, error) {
	found, err := all[SignIn](ctx, t.c, "SELECT "+signInColumns+" FROM signins WHERE user_id = $1 ORDER BY server LIMIT $2", userID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("sign-ins of user %q: %w", userID, err)
	}
	return found, nil
}

// Began returns since when a user is signed in, by the servers' hashes, at most [MaxPage];
// it does not read what he was given.
func (t SignIns) Began(ctx context.Context, userID string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := t.c.query(ctx, false, func(rows *sql.Rows) error {
		var server []byte
		var began stamp
		if err := rows.Scan(&server, &began); err != nil {
			return err
		}
		out[string(server)] = time.Time(began)
		return nil
	}, "SELECT server, began FROM signins WHERE user_id = $1 ORDER BY server LIMIT $2", userID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("sign-ins of user %q: %w", userID, err)
	}
	return out, nil
}

// Delete forgets a sign-in; one that is not there is forgotten already.
func (t SignIns) Delete(ctx context.Context, userID string, server []byte) error {
	if _, err := t.c.exec(ctx, "DELETE FROM signins WHERE user_id = $1 AND server = $2", userID, server); err != nil {
		return fmt.Errorf("forget a sign-in: %w", err)
	}
	return nil
}

// Attempt keeps a sign-in that was begun, for some time. Where the user has so many that
// wait the error is [ErrTooMany].
func (t SignIns) Attempt(ctx context.Context, a Attempt, span time.Duration, most int64) error {
	d := t.c.db.dialect
	n, err := scalar[int64](ctx, t.c, "SELECT count(*) FROM signin_attempts WHERE user_id = $1 AND until > "+d.now, a.UserID)
	if err == nil && n >= most {
		err = ErrTooMany
	}
	if err == nil {
		_, err = t.c.exec(ctx, "INSERT INTO signin_attempts ("+attemptColumns+", until) VALUES ($1, $2, $3, $4, "+d.now+" + CAST($5 AS BIGINT))",
			append(a.fields(), span.Milliseconds())...)
	}
	if err != nil {
		return fmt.Errorf("begin a sign-in: %w", parentless(err))
	}
	return nil
}

// Take returns an attempt of a user in a browser and forgets it: once. One that is not
// there, is late, or is of another user or browser is [ErrNotFound].
func (t SignIns) Take(ctx context.Context, state []byte, userID string, browser []byte) (Attempt, error) {
	taken, err := changed[Attempt](ctx, t.c, "DELETE FROM signin_attempts WHERE state = $1 AND user_id = $2 AND browser = $3 AND until > "+t.c.db.dialect.now+
		" RETURNING "+attemptColumns, state, userID, browser)
	if err == nil && len(taken) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return Attempt{}, fmt.Errorf("take a sign-in that was begun: %w", err)
	}
	return taken[0], nil
}

// Wanted notes that a server refused who was not signed in.
func (t SignIns) Wanted(ctx context.Context, server []byte) error {
	at := now()
	_, err := t.c.exec(ctx, `INSERT INTO signin_servers (server, seen) VALUES ($1, $2)
		ON CONFLICT (server) DO UPDATE SET seen = excluded.seen WHERE signin_servers.seen < $3`, server, stamp(at), stamp(at.Add(-time.Hour)))
	if err != nil {
		return fmt.Errorf("note that a server wants a sign-in: %w", err)
	}
	return nil
}

// Wants returns which servers refused who was not signed in, by their hashes.
func (t SignIns) Wants(ctx context.Context, servers [][]byte) (map[string]bool, error) {
	out := map[string]bool{}
	for some := range slices.Chunk(servers, MaxPage) {
		args := make([]any, len(some))
		for i, s := range some {
			args[i] = s
		}
		found, err := scalars[[]byte](ctx, t.c, "SELECT server FROM signin_servers WHERE server IN ("+places(1, len(args))+")", args...)
		if err != nil {
			return nil, fmt.Errorf("servers that want a sign-in: %w", err)
		}
		for _, s := range found {
			out[string(s)] = true
		}
	}
	return out, nil
}

// Prune forgets attempts that are late, and servers that refused nobody since then.
func (t SignIns) Prune(ctx context.Context, since time.Time) error {
	_, err := t.c.exec(ctx, "DELETE FROM signin_attempts WHERE until <= "+t.c.db.dialect.now)
	if err == nil {
		_, err = t.c.exec(ctx, "DELETE FROM signin_servers WHERE seen < $1", stamp(since))
	}
	if err != nil {
		return fmt.Errorf("forget old sign-ins: %w", err)
	}
	return nil
}
