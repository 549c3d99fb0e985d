package store

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"time"
)

// AuditRecord is an entry in the audit log.
type AuditRecord struct {
	Seq       int64           `json:"number"` // set by Append
	At        time.Time       `json:"at"`
	Actor     string          `json:"actor" doc:"ID of the user; empty for an anonymous request"`
	Action    string          `json:"action"`
	Namespace Namespace       `json:"namespace,omitempty" doc:"user:ID or group:ID; absent for the hub"`
	Subject   string          `json:"subject,omitempty" doc:"The affected item"`
	Decision  string          `json:"decision" enum:"allowed,denied,asked" doc:"asked: an approval was required"`
	Details   json.RawMessage `json:"details,omitempty"`
}

const recordColumns = "at, actor, action, namespace, subject, decision, details"

func (r *AuditRecord) fields() []any { return append([]any{&r.Seq}, r.columns()...) }

func (r *AuditRecord) columns() []any {
	return []any{(*timestamp)(&r.At), &r.Actor, &r.Action, (*string)(&r.Namespace), &r.Subject, &r.Decision, (*jsonText)(&r.Details)}
}

// Audit stores the audit log. Records are immutable; only [Audit.Prune] deletes
// them.
type Audit struct{ c conn }

// Append adds a record. If At is zero, it is set to the current time.
func (t Audit) Append(ctx context.Context, r AuditRecord) error {
	setDefaultTime(&r.At)
	if err := t.c.insert(ctx, "audit", recordColumns, r.columns()); err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	return nil
}

// AuditQuery selects audit records. An empty field matches all records.
type AuditQuery struct {
	Actor     string
	Action    string
	Namespace Namespace
	Subject   string
	Decision  string
	Since     time.Time // only records from this time on
	Until     time.Time // only records before this time
	Before    int64     // only records with a lower Seq; 0 means all
	Limit     int       // 0 means 50; at most [MaxPage]
}

// List returns the selected records, newest first. On PostgreSQL, a record that
// is committed late can have a lower Seq than records that were already listed.
func (t Audit) List(ctx context.Context, q AuditQuery) ([]AuditRecord, error) {
	where, args := "seq > 0", []any{Page{Limit: q.Limit}.Size()}
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
	if !q.Since.IsZero() {
		add("at >=", timestamp(q.Since))
	}
	if !q.Until.IsZero() {
		add("at <", timestamp(q.Until))
	}
	if q.Before > 0 {
		add("seq <", q.Before)
	}
	found, err := queryAll[AuditRecord](ctx, t.c, "SELECT seq, "+recordColumns+" FROM audit WHERE "+where+" ORDER BY seq DESC LIMIT $1", args...)
	if err != nil {
		return nil, fmt.Errorf("read the audit log: %w", err)
	}
	return found, nil
}

// Prune deletes records older than the given time and returns their number.
func (t Audit) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM audit WHERE at < $1", timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old audit records: %w", err)
	}
	return n, nil
}
