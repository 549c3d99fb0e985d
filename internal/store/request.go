package store

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Limits on the recorded requests of a principal. Concurrent calls of
// [Requests.Begin] can exceed them by the number of calls.
const (
	MaxRequests      = 10_000
	MaxResponseBytes = 64 << 20 // total size of the stored responses
)

// Request records a request and its response, so that the client can safely
// repeat the request.
type Request struct {
	Principal string // a user id
	Label     string // chosen by the client, unique for each request
	Digest    string // encrypted digest of the request
	Created   time.Time
	Status    int64  // status of the response; 0 while there is none
	Response  string // "" if it is not stored any more
}

const requestLogColumns = "principal, label, digest, created, status, response"

func (r *Request) fields() []any {
	return []any{&r.Principal, &r.Label, &r.Digest, (*timestamp)(&r.Created), &r.Status, &r.Response}
}

// Requests stores requests with an idempotency key.
type Requests struct{ c conn }

// Begin records a request without a response. It fails with [ErrExists] if the
// principal has already used the label, and with [ErrTooMany] if the principal
// already has [MaxRequests] requests since the given time.
func (t Requests) Begin(ctx context.Context, r Request, since time.Time) error {
	r.Created, r.Status, r.Response = now(), 0, ""
	n, err := queryScalar[int64](ctx, t.c, "SELECT count(*) FROM requests WHERE principal = $1 AND created >= $2", r.Principal, timestamp(since))
	if err == nil && n >= MaxRequests {
		if _, err = t.Get(ctx, r.Principal, r.Label); errors.Is(err, ErrNotFound) {
			err = fmt.Errorf("%w: %q has %d recorded requests (limit %d)", ErrTooMany, r.Principal, n, MaxRequests)
		} else if err == nil {
			err = ErrExists
		}
	} else if err == nil {
		err = t.c.insert(ctx, "requests", requestLogColumns, r.fields())
	}
	if err != nil {
		return fmt.Errorf("record request: %w", err)
	}
	return nil
}

// Oldest returns the time of the oldest request of a principal since the given
// time.
func (t Requests) Oldest(ctx context.Context, principal string, since time.Time) (time.Time, error) {
	r, err := queryOne[Request](ctx, t.c, "SELECT "+requestLogColumns+" FROM requests WHERE principal = $1 AND created >= $2 ORDER BY created LIMIT 1", principal, timestamp(since))
	if err != nil {
		return time.Time{}, fmt.Errorf("get oldest request: %w", err)
	}
	return r.Created, nil
}

// Get returns the request of a principal with the given label.
func (t Requests) Get(ctx context.Context, principal, label string) (Request, error) {
	r, err := queryOne[Request](ctx, t.c, "SELECT "+requestLogColumns+" FROM requests WHERE principal = $1 AND label = $2", principal, label)
	if err != nil {
		return Request{}, fmt.Errorf("get request: %w", err)
	}
	return r, nil
}

// End adds the response to a request. If the total size of the principal's
// responses then exceeds [MaxResponseBytes], it deletes the oldest responses,
// but not their requests.
func (t Requests) End(ctx context.Context, r Request) error {
	err := t.c.execAffecting(ctx, "UPDATE requests SET status = $3, response = $4 WHERE principal = $1 AND label = $2", r.Principal, r.Label, r.Status, r.Response)
	if err != nil {
		return fmt.Errorf("record response to request: %w", err)
	}
	_, err = t.c.exec(ctx, `UPDATE requests SET response = '' WHERE principal = $1 AND label IN (SELECT label FROM
		(SELECT label, SUM(octet_length(response)) OVER (ORDER BY created DESC, label) AS total FROM requests WHERE principal = $1 AND response <> '') AS t
		WHERE total > $2)`, r.Principal, MaxResponseBytes)
	if err != nil {
		return fmt.Errorf("delete old responses to requests: %w", err)
	}
	return nil
}

// Delete deletes the record of a request that changed nothing, so that the client
// can repeat the request.
func (t Requests) Delete(ctx context.Context, principal, label string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM requests WHERE principal = $1 AND label = $2", principal, label); err != nil {
		return fmt.Errorf("delete request: %w", err)
	}
	return nil
}

// Prune deletes the requests created before the given time.
func (t Requests) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM requests WHERE created < $1", timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old requests: %w", err)
	}
	return n, nil
}
