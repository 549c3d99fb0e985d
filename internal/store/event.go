package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Event is one thing that happened in a stream. The first of a stream has number 1,
// and none is left out.
type Event struct {
	Seq     int64 // set by Append
	Kind    string
	Data    json.RawMessage
	Created time.Time // set by Append where it is zero; no order is by it
}

const eventColumns = "seq, kind, data, created"

func (e *Event) fields() []any {
	return []any{&e.Seq, &e.Kind, (*document)(&e.Data), (*stamp)(&e.Created)}
}

// Bounds of events.
const (
	MaxAppend = 100  // that are added at once
	MaxRead   = 1000 // that are read at once
)

// Events keeps what happened, in streams.
type Events struct{ c conn }

// Append adds events to a stream after the number that the caller knows as its last,
// all or none, and returns the last number then. Where another one has added some
// since, it fails with [ErrConflict]: of two that add after the same number one does.
func (t Events) Append(ctx context.Context, stream string, after int64, events ...Event) (int64, error) {
	if len(events) == 0 {
		return after, nil
	}
	if len(events) > MaxAppend {
		return 0, fmt.Errorf("append to %q: %w: %d events, more than %d", stream, ErrInvalid, len(events), MaxAppend)
	}
	query, args := appendSQL(stream, after, events)
	n, err := t.c.exec(ctx, query, args...)
	switch {
	case err == nil && n == 0, errors.Is(err, ErrExists):
		err = fmt.Errorf("%w: %d is not its last event", ErrConflict, after)
	case err == nil:
		return after + int64(len(events)), nil
	}
	return 0, fmt.Errorf("append to %q: %w", stream, err)
}

// appendSQL is one statement that adds events where the stream ends as it is thought
// to. Two of them at the same time both think so; the key of the table lets one of
// them through.
func appendSQL(stream string, after int64, events []Event) (string, []any) {
	args := []any{stream, after}
	var rows []string
	for i, e := range events {
		orNow(&e.Created)
		p := len(args)
		rows = append(rows, fmt.Sprintf(
			"SELECT CAST($1 AS TEXT), CAST($%d AS BIGINT), CAST($%d AS TEXT), CAST($%d AS TEXT), CAST($%d AS BIGINT) WHERE"+
				" (SELECT COALESCE(max(seq), 0) FROM events WHERE stream = $1) = $2", p+1, p+2, p+3, p+4))
		args = append(args, after+1+int64(i), e.Kind, document(e.Data), stamp(e.Created))
	}
	return "INSERT INTO events (stream, seq, kind, data, created) " + strings.Join(rows, " UNION ALL "), args
}

// Read returns the events of a stream after a number, in order: at most limit, and
// never more than [MaxRead].
func (t Events) Read(ctx context.Context, stream string, after int64, limit int) ([]Event, error) {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	events, err := all[Event](ctx, t.c, "SELECT "+eventColumns+" FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3", stream, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read %q: %w", stream, err)
	}
	return events, nil
}

// Last returns the number of the last event of a stream, 0 of one that has none.
func (t Events) Last(ctx context.Context, stream string) (int64, error) {
	n, err := scalar[int64](ctx, t.c, "SELECT COALESCE(max(seq), 0) FROM events WHERE stream = $1", stream)
	if err != nil {
		return 0, fmt.Errorf("end of %q: %w", stream, err)
	}
	return n, nil
}

type streamEnd struct {
	Stream string
	Seq    int64
}

func (s *streamEnd) fields() []any { return []any{&s.Stream, &s.Seq} }

// Lasts returns the number of the last event of each of some streams, at most
// [MaxRead]; those that have none are left out. It is how to look, all at once, for
// what no message told of.
func (t Events) Lasts(ctx context.Context, streams []string) (map[string]int64, error) {
	if len(streams) > MaxRead {
		return nil, fmt.Errorf("ends of streams: %w: %d, more than %d", ErrInvalid, len(streams), MaxRead)
	}
	out := make(map[string]int64, len(streams))
	if len(streams) == 0 {
		return out, nil
	}
	ends, err := all[streamEnd](ctx, t.c, "SELECT stream, max(seq) FROM events WHERE stream IN ("+places(1, len(streams))+") GROUP BY stream", anys(streams)...)
	if err != nil {
		return nil, fmt.Errorf("ends of streams: %w", err)
	}
	for _, e := range ends {
		out[e.Stream] = e.Seq
	}
	return out, nil
}

// Delete removes a stream. Who still knows its last number can add to it no more.
func (t Events) Delete(ctx context.Context, stream string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM events WHERE stream = $1", stream); err != nil {
		return fmt.Errorf("delete %q: %w", stream, err)
	}
	return nil
}
