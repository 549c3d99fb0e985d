package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Ask is a question that waits for an answer, or has one.
type Ask struct {
	ID        string
	Session   string
	Principal string // who may answer
	Data      json.RawMessage
	Created   time.Time // set by Put where it is zero
	Deadline  time.Time // zero is none
	Settled   time.Time // zero while it waits
	Answer    json.RawMessage
}

const askColumns = "id, session, principal, data, created, deadline, settled, answer"

func (a *Ask) fields() []any {
	return []any{&a.ID, &a.Session, &a.Principal, (*document)(&a.Data), (*stamp)(&a.Created), (*stamp)(&a.Deadline), (*stamp)(&a.Settled), (*document)(&a.Answer)}
}

// MaxOpenAsks bounds the asks of one session that wait.
const MaxOpenAsks = 1000

// Asks keeps questions and their answers.
type Asks struct{ c conn }

// Put keeps an ask that waits. An id that is there is [ErrExists], one more of a
// session than [MaxOpenAsks] is [ErrTooMany].
func (t Asks) Put(ctx context.Context, a Ask) error {
	orNow(&a.Created)
	a.Settled, a.Answer = time.Time{}, nil
	err := t.c.atomic(ctx, func(c conn) error {
		open, err := scalar[int64](ctx, c, "SELECT count(*) FROM asks WHERE session = $1 AND settled = 0", a.Session)
		if err != nil {
			return err
		}
		if open >= MaxOpenAsks {
			return fmt.Errorf("%w: %d wait in session %q", ErrTooMany, open, a.Session)
		}
		return c.insert(ctx, "asks", askColumns, a.fields())
	})
	if err != nil {
		return fmt.Errorf("keep question %q: %w", a.ID, err)
	}
	return nil
}

// Get returns the ask with an id, with its answer where it has one.
func (t Asks) Get(ctx context.Context, id string) (Ask, error) {
	a, err := one[Ask](ctx, t.c, "SELECT "+askColumns+" FROM asks WHERE id = $1", id)
	if err != nil {
		return Ask{}, fmt.Errorf("question %q: %w", id, err)
	}
	return a, nil
}

// Settle keeps an answer where the ask waits, and reports whether it did; and returns
// the ask with the answer that stands. Of any number at the same time one is kept.
func (t Asks) Settle(ctx context.Context, id string, answer json.RawMessage) (stands Ask, first bool, err error) {
	if len(answer) == 0 {
		return Ask{}, false, fmt.Errorf("answer question %q: %w: no answer", id, ErrInvalid)
	}
	won, err := changed[Ask](ctx, t.c, "UPDATE asks SET answer = $2, settled = $3 WHERE id = $1 AND settled = 0 RETURNING "+askColumns, id, document(answer), stamp(now()))
	if err != nil {
		return Ask{}, false, fmt.Errorf("answer question %q: %w", id, err)
	}
	if len(won) == 1 {
		return won[0], true, nil
	}
	stands, err = t.Get(ctx, id)
	return stands, false, err
}

// Open returns the asks of a session that wait, those made first first.
func (t Asks) Open(ctx context.Context, session string) ([]Ask, error) {
	found, err := all[Ask](ctx, t.c, "SELECT "+askColumns+" FROM asks WHERE session = $1 AND settled = 0 ORDER BY created, id LIMIT $2", session, MaxOpenAsks)
	if err != nil {
		return nil, fmt.Errorf("questions of session %q: %w", session, err)
	}
	return found, nil
}

// OpenFor returns the asks that a principal may answer, those made first first: at
// most [MaxPage].
func (t Asks) OpenFor(ctx context.Context, principal string) ([]Ask, error) {
	found, err := all[Ask](ctx, t.c, "SELECT "+askColumns+" FROM asks WHERE principal = $1 AND settled = 0 ORDER BY created, id LIMIT $2", principal, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("questions for %q: %w", principal, err)
	}
	return found, nil
}

// Overdue returns asks that wait and whose deadline has passed by then, the most
// overdue first: at most [MaxPage].
func (t Asks) Overdue(ctx context.Context, by time.Time) ([]Ask, error) {
	found, err := all[Ask](ctx, t.c, "SELECT "+askColumns+" FROM asks WHERE settled = 0 AND deadline > 0 AND deadline <= $1 ORDER BY deadline, id LIMIT $2", stamp(by), MaxPage)
	if err != nil {
		return nil, fmt.Errorf("questions that are overdue: %w", err)
	}
	return found, nil
}

// Delete forgets an ask, where it is there.
func (t Asks) Delete(ctx context.Context, id string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM asks WHERE id = $1", id); err != nil {
		return fmt.Errorf("forget question %q: %w", id, err)
	}
	return nil
}

// Prune forgets the asks that were settled before a time, and returns how many.
func (t Asks) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM asks WHERE settled > 0 AND settled < $1", stamp(before))
	if err != nil {
		return 0, fmt.Errorf("forget old questions: %w", err)
	}
	return n, nil
}
