package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// ApprovalRequest is a question that a user must answer, with the answer if there
// is one.
type ApprovalRequest struct {
	ID        string
	Session   string
	Principal string // user who may answer
	Data      json.RawMessage
	Created   time.Time // set by Add if zero
	Deadline  time.Time // zero for none
	Resolved  time.Time // zero while pending
	Answer    json.RawMessage
}

const requestColumns = "id, session, principal, data, created, deadline, settled, answer"

func (a *ApprovalRequest) fields() []any {
	return []any{&a.ID, &a.Session, &a.Principal, (*jsonText)(&a.Data), (*timestamp)(&a.Created), (*timestamp)(&a.Deadline), (*timestamp)(&a.Resolved), (*jsonText)(&a.Answer)}
}

// MaxPendingRequests is the maximum number of pending requests per session.
const MaxPendingRequests = 1000

// ApprovalRequests stores approval requests and their answers.
type ApprovalRequests struct{ c conn }

// Add adds a pending request. It fails with [ErrExists] if the id is taken, and
// with [ErrTooMany] if the session already has [MaxPendingRequests].
func (t ApprovalRequests) Add(ctx context.Context, a ApprovalRequest) error {
	setDefaultTime(&a.Created)
	a.Resolved, a.Answer = time.Time{}, nil
	err := t.c.inTransaction(ctx, func(c conn) error {
		open, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM asks WHERE session = $1 AND settled = 0", a.Session)
		if err != nil {
			return err
		}
		if open >= MaxPendingRequests {
			return fmt.Errorf("%w: session %q has %d pending approval requests (limit %d)", ErrTooMany, a.Session, open, MaxPendingRequests)
		}
		return c.insert(ctx, "asks", requestColumns, a.fields())
	})
	if err != nil {
		return fmt.Errorf("add approval request %q: %w", a.ID, err)
	}
	return nil
}

// Get returns the request with the given id, including its answer if it has
// one.
func (t ApprovalRequests) Get(ctx context.Context, id string) (ApprovalRequest, error) {
	a, err := queryOne[ApprovalRequest](ctx, t.c, "SELECT "+requestColumns+" FROM asks WHERE id = $1", id)
	if err != nil {
		return ApprovalRequest{}, fmt.Errorf("get approval request %q: %w", id, err)
	}
	return a, nil
}

// Resolve answers a request if it is pending. It returns the stored request and
// reports whether this call answered it. Only one of several concurrent calls
// answers the request.
func (t ApprovalRequests) Resolve(ctx context.Context, id string, answer json.RawMessage) (stored ApprovalRequest, first bool, err error) {
	if len(answer) == 0 {
		return ApprovalRequest{}, false, fmt.Errorf("answer approval request %q: %w: empty answer", id, ErrInvalid)
	}
	won, err := execReturning[ApprovalRequest](ctx, t.c, "UPDATE asks SET answer = $2, settled = $3 WHERE id = $1 AND settled = 0 RETURNING "+requestColumns, id, jsonText(answer), timestamp(now()))
	if err != nil {
		return ApprovalRequest{}, false, fmt.Errorf("answer approval request %q: %w", id, err)
	}
	if len(won) == 1 {
		return won[0], true, nil
	}
	stored, err = t.Get(ctx, id)
	return stored, false, err
}

// ListPending returns all of a session's pending requests, oldest first.
func (t ApprovalRequests) ListPending(ctx context.Context, session string) ([]ApprovalRequest, error) {
	found, err := queryAll[ApprovalRequest](ctx, t.c, "SELECT "+requestColumns+" FROM asks WHERE session = $1 AND settled = 0 ORDER BY created, id LIMIT $2", session, MaxPendingRequests)
	if err != nil {
		return nil, fmt.Errorf("list approval requests of session %q: %w", session, err)
	}
	return found, nil
}

// ListPendingFor returns up to [MaxPage] pending requests that a principal may
// answer, oldest first.
func (t ApprovalRequests) ListPendingFor(ctx context.Context, principal string) ([]ApprovalRequest, error) {
	found, err := queryAll[ApprovalRequest](ctx, t.c, "SELECT "+requestColumns+" FROM asks WHERE principal = $1 AND settled = 0 ORDER BY created, id LIMIT $2", principal, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list approval requests for %q: %w", principal, err)
	}
	return found, nil
}

// ListOverdue returns up to [MaxPage] pending requests whose deadline is not
// after now, sorted by deadline.
func (t ApprovalRequests) ListOverdue(ctx context.Context, now time.Time) ([]ApprovalRequest, error) {
	found, err := queryAll[ApprovalRequest](ctx, t.c, "SELECT "+requestColumns+" FROM asks WHERE settled = 0 AND deadline > 0 AND deadline <= $1 ORDER BY deadline, id LIMIT $2", timestamp(now), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list overdue approval requests: %w", err)
	}
	return found, nil
}

// Delete deletes a request. It does nothing if the request does not exist.
func (t ApprovalRequests) Delete(ctx context.Context, id string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM asks WHERE id = $1", id); err != nil {
		return fmt.Errorf("delete approval request %q: %w", id, err)
	}
	return nil
}

// Prune deletes requests resolved before the given time and returns their
// number.
func (t ApprovalRequests) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM asks WHERE settled > 0 AND settled < $1", timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old approval requests: %w", err)
	}
	return n, nil
}
