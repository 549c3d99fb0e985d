package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// Record is one entry of the audit log.
type Record struct {
	Seq       int64 // set by Append
	At        time.Time
	Actor     string
	Action    string
	Namespace Namespace // "" is none
	Subject   string
	Decision  string
	Details   json.RawMessage
}

const recordColumns = "at, actor, action, namespace, subject, decision, details"

func (r *Record) fields() []any { return append([]any{&r.Seq}, r.columns()...) }

func (r *Record) columns() []any {
	return []any{(*stamp)(&r.At), &r.Actor, &r.Action, (*string)(&r.Namespace), &r.Subject, &r.Decision, (*document)(&r.Details)}
}

// Audit keeps what was done and decided. Nothing changes a record, and none is removed
// but by [Audit.Prune].
type Audit struct{ c conn }

// Append adds a record; At is set where it is zero.
func (t Audit) Append(ctx context.Context, r Record) error {
	orNow(&r.At)
	if err := t.c.insert(ctx, "audit", recordColumns, r.columns()); err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	return nil
}

// AuditQuery asks for records: those that have all that is set.
type AuditQuery struct {
	Actor     string
	Action    string
	Namespace Namespace
	Subject   string
	Decision  string
	Before    int64 // a number; 0 is the end of the log
	Limit     int   // 0 is 50, and more than [MaxPage] is that
}

// List returns records, those added last first. On PostgreSQL one that was being
// added may come to be seen before, in this order, of one that was seen.
func (t Audit) List(ctx context.Context, q AuditQuery) ([]Record, error) {
	where, args := "seq > 0", []any{Page{Limit: q.Limit}.limit()}
	add := func(condition string, v any) {
		args = append(args, v)
		where += " AND " + condition + " $" + strconv.Itoa(len(args))
	}
	for _, c := range []struct{ column, value string }{
		{"actor", q.Actor}, {"action", q.Action}, {"namespace", string(q.Namespace)}, {"subject", q.Subject}, {"decision", q.Decision},
	} {
		if c.value != "" {
			add(c.column+" =", c.value)
		}
	}
	if q.Before > 0 {
		add("seq <", q.Before)
	}
	found, err := all[Record](ctx, t.c, "SELECT seq, "+recordColumns+" FROM audit WHERE "+where+" ORDER BY seq DESC LIMIT $1", args...)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return found, nil
}

// Prune removes the records that are older than a time, where an operator keeps them
// for so long only, and returns how many.
func (t Audit) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM audit WHERE at < $1", stamp(before))
	if err != nil {
		return 0, fmt.Errorf("remove old audit records: %w", err)
	}
	return n, nil
}
