package store

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// SignIn records that a user is signed in to an MCP server. The tokens are
// encrypted.
type SignIn struct {
	UserID    string
	Server    []byte // hash that identifies the server
	Encrypted []byte
	KeyID     string // ID of the encryption key
	Started   time.Time
}

const signInColumns = "user_id, server, sealed, key_id, began"

func (s *SignIn) fields() []any {
	return []any{&s.UserID, &s.Server, &s.Encrypted, &s.KeyID, (*timestamp)(&s.Started)}
}

// SignInAttempt is an unfinished sign-in to an MCP server.
type SignInAttempt struct {
	State     []byte // hash of the OAuth state
	UserID    string
	Browser   []byte // hash of the browser's cookie
	Encrypted []byte
}

func (a *SignInAttempt) fields() []any { return []any{&a.State, &a.UserID, &a.Browser, &a.Encrypted} }

const attemptColumns = "state, user_id, browser, sealed"

// SignIns stores users' sign-ins to MCP servers.
type SignIns struct{ c conn }

// Put stores a sign-in. It replaces any previous sign-in for the same user and
// server, but keeps its Started time.
func (t SignIns) Put(ctx context.Context, s SignIn) error {
	if len(s.Encrypted) == 0 || len(s.Encrypted) > MaxEncrypted {
		return fmt.Errorf("store sign-in: %w: %d bytes, limit %d", ErrInvalid, len(s.Encrypted), MaxEncrypted)
	}
	s.Started = now()
	_, err := t.c.execSecrets(ctx, "INSERT INTO signins ("+signInColumns+`) VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (user_id, server) DO UPDATE SET sealed = excluded.sealed, key_id = excluded.key_id`, s.fields()...)
	if err != nil {
		return fmt.Errorf("store sign-in: %w", toNotFound(err))
	}
	return nil
}

// MarkStarted sets the Started time of a sign-in to now.
func (t SignIns) MarkStarted(ctx context.Context, userID string, server []byte) error {
	n, err := t.c.execSecrets(ctx, "UPDATE signins SET began = $3 WHERE user_id = $1 AND server = $2", userID, server, timestamp(now()))
	if err == nil && n == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("record sign-in: %w", err)
	}
	return nil
}

// Get returns a user's sign-in to a server.
func (t SignIns) Get(ctx context.Context, userID string, server []byte) (SignIn, error) {
	s, err := queryOne[SignIn](ctx, t.c, "SELECT "+signInColumns+" FROM signins WHERE user_id = $1 AND server = $2", userID, server)
	if err != nil {
		return SignIn{}, fmt.Errorf("get sign-in: %w", err)
	}
	return s, nil
}

// ListByUser returns up to [MaxPage] of a user's sign-ins.
func (t SignIns) ListByUser(ctx context.Context, userID string) ([]SignIn, error) {
	found, err := queryAll[SignIn](ctx, t.c, "SELECT "+signInColumns+" FROM signins WHERE user_id = $1 ORDER BY server LIMIT $2", userID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list sign-ins of user %q: %w", userID, err)
	}
	return found, nil
}

// StartTimes returns the start times of up to [MaxPage] of a user's sign-ins,
// keyed by server hash. It does not read the encrypted tokens.
func (t SignIns) StartTimes(ctx context.Context, userID string) (map[string]time.Time, error) {
	out := map[string]time.Time{}
	err := t.c.query(ctx, false, func(rows *sql.Rows) error {
		var server []byte
		var began timestamp
		if err := rows.Scan(&server, &began); err != nil {
			return err
		}
		out[string(server)] = time.Time(began)
		return nil
	}, "SELECT server, began FROM signins WHERE user_id = $1 ORDER BY server LIMIT $2", userID, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("get sign-in times of user %q: %w", userID, err)
	}
	return out, nil
}

// Delete deletes a sign-in. It does nothing if the sign-in does not exist.
func (t SignIns) Delete(ctx context.Context, userID string, server []byte) error {
	if _, err := t.c.execSecrets(ctx, "DELETE FROM signins WHERE user_id = $1 AND server = $2", userID, server); err != nil {
		return fmt.Errorf("delete sign-in: %w", err)
	}
	return nil
}

// AddAttempt stores an attempt that expires after span. It fails with
// [ErrTooMany] if the user already has limit pending attempts.
func (t SignIns) AddAttempt(ctx context.Context, a SignInAttempt, span time.Duration, limit int64) error {
	d := t.c.db.dialect
	n, err := queryScalar[int64](ctx, t.c, "SELECT count(*) FROM signin_attempts WHERE user_id = $1 AND until > "+d.now, a.UserID)
	if err == nil && n >= limit {
		err = fmt.Errorf("%w: %d pending sign-in attempts, limit %d", ErrTooMany, n, limit)
	}
	if err == nil {
		_, err = t.c.exec(ctx, "INSERT INTO signin_attempts ("+attemptColumns+", until) VALUES ($1, $2, $3, $4, "+d.now+" + CAST($5 AS BIGINT))",
			append(a.fields(), span.Milliseconds())...)
	}
	if err != nil {
		return fmt.Errorf("start sign-in: %w", toNotFound(err))
	}
	return nil
}

// UseAttempt deletes an attempt and returns it. It fails with [ErrNotFound] if
// the attempt does not exist, has expired, or belongs to another user or browser.
func (t SignIns) UseAttempt(ctx context.Context, state []byte, userID string, browser []byte) (SignInAttempt, error) {
	taken, err := execReturning[SignInAttempt](ctx, t.c, "DELETE FROM signin_attempts WHERE state = $1 AND user_id = $2 AND browser = $3 AND until > "+t.c.db.dialect.now+
		" RETURNING "+attemptColumns, state, userID, browser)
	if err == nil && len(taken) == 0 {
		err = ErrNotFound
	}
	if err != nil {
		return SignInAttempt{}, fmt.Errorf("use sign-in attempt: %w", err)
	}
	return taken[0], nil
}

// MarkRequired records that a server requires a sign-in.
func (t SignIns) MarkRequired(ctx context.Context, server []byte) error {
	at := now()
	_, err := t.c.exec(ctx, `INSERT INTO signin_servers (server, seen) VALUES ($1, $2)
		ON CONFLICT (server) DO UPDATE SET seen = excluded.seen WHERE signin_servers.seen < $3`, server, timestamp(at), timestamp(at.Add(-time.Hour)))
	if err != nil {
		return fmt.Errorf("record required sign-in: %w", err)
	}
	return nil
}

// FilterRequired returns the hashes of the given servers that require a
// sign-in.
func (t SignIns) FilterRequired(ctx context.Context, servers [][]byte) (map[string]bool, error) {
	out := map[string]bool{}
	for some := range slices.Chunk(servers, MaxPage) {
		args := make([]any, len(some))
		for i, s := range some {
			args[i] = s
		}
		found, err := queryScalars[[]byte](ctx, t.c, "SELECT server FROM signin_servers WHERE server IN ("+placeholders(1, len(args))+")", args...)
		if err != nil {
			return nil, fmt.Errorf("find servers that require a sign-in: %w", err)
		}
		for _, s := range found {
			out[string(s)] = true
		}
	}
	return out, nil
}

// Prune deletes expired attempts and the records of servers that have not
// required a sign-in since the given time.
func (t SignIns) Prune(ctx context.Context, since time.Time) error {
	_, err := t.c.exec(ctx, "DELETE FROM signin_attempts WHERE until <= "+t.c.db.dialect.now)
	if err == nil {
		_, err = t.c.exec(ctx, "DELETE FROM signin_servers WHERE seen < $1", timestamp(since))
	}
	if err != nil {
		return fmt.Errorf("delete old sign-ins: %w", err)
	}
	return nil
}
