package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Event is an entry in a stream. The events in a stream are numbered from 1
// without gaps.
type Event struct {
	Seq     int64 // set by Append
	Kind    string
	Data    json.RawMessage
	Created time.Time // set by Append if zero; does not determine the order
}

const eventColumns = "seq, kind, data, created"

func (e *Event) fields() []any {
	return []any{&e.Seq, &e.Kind, (*jsonText)(&e.Data), (*timestamp)(&e.Created)}
}

// Limits per call.
const (
	MaxAppend = 100  // events per Append
	MaxRead   = 1000 // events per Read
)

// Events stores append-only streams, each identified by its name. The streams of a
// session have its id as their name, alone or before a slash: [Storage] counts them.
type Events struct{ c conn }

// Append adds events to a stream, all or none, and returns the number of the
// last one. It fails with [ErrConflict] unless after is the number of the last
// event in the stream. Only one of several calls with the same number succeeds.
func (t Events) Append(ctx context.Context, stream string, after int64, events ...Event) (int64, error) {
	if len(events) == 0 {
		return after, nil
	}
	if len(events) > MaxAppend {
		return 0, fmt.Errorf("append to event stream %q: %w: %d events, limit %d", stream, ErrInvalid, len(events), MaxAppend)
	}
	err := t.c.inTransaction(ctx, func(c conn) error {
		query, args := appendSQL(stream, after, events)
		n, err := c.exec(ctx, query, args...)
		if err == nil && n == 0 || errors.Is(err, ErrExists) {
			return fmt.Errorf("%w: event %d is not the last event", ErrConflict, after)
		}
		if err != nil {
			return err
		}
		return c.addStreamSize(ctx, stream, events)
	})
	if err != nil {
		return 0, fmt.Errorf("append to event stream %q: %w", stream, err)
	}
	return after + int64(len(events)), nil
}

// addStreamSize adds the sizes of new events to the size of their stream.
func (c conn) addStreamSize(ctx context.Context, stream string, events []Event) error {
	var bytes int
	for _, e := range events {
		bytes += len(e.Data)
	}
	session, _, _ := strings.Cut(stream, "/")
	_, err := c.exec(ctx, `INSERT INTO stream_sizes (session, stream, bytes) VALUES ($1, $2, $3)
		ON CONFLICT (session, stream) DO UPDATE SET bytes = stream_sizes.bytes + excluded.bytes`, session, stream, bytes)
	return err
}

// appendSQL returns a statement that adds events if the stream still ends at
// after. If two such statements run at the same time, the primary key rejects
// one of them.
func appendSQL(stream string, after int64, events []Event) (string, []any) {
	args := []any{stream, after}
	var rows []string
	for i, e := range events {
		setDefaultTime(&e.Created)
		p := len(args)
		rows = append(rows, fmt.Sprintf(
			"SELECT CAST($1 AS TEXT), CAST($%d AS BIGINT), CAST($%d AS TEXT), CAST($%d AS TEXT), CAST($%d AS BIGINT) WHERE"+
				" (SELECT COALESCE(max(seq), 0) FROM events WHERE stream = $1) = $2", p+1, p+2, p+3, p+4))
		args = append(args, after+1+int64(i), e.Kind, jsonText(e.Data), timestamp(e.Created))
	}
	return "INSERT INTO events (stream, seq, kind, data, created) " + strings.Join(rows, " UNION ALL "), args
}

// Read returns the events of a stream that follow event number after, in order.
// It returns up to limit events, but no more than [MaxRead].
func (t Events) Read(ctx context.Context, stream string, after int64, limit int) ([]Event, error) {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	events, err := queryAll[Event](ctx, t.c, "SELECT "+eventColumns+" FROM events WHERE stream = $1 AND seq > $2 ORDER BY seq LIMIT $3", stream, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read event stream %q: %w", stream, err)
	}
	return events, nil
}

// Last returns the number of the last event in a stream, or 0 if it is empty.
func (t Events) Last(ctx context.Context, stream string) (int64, error) {
	n, err := queryScalar[int64](ctx, t.c, "SELECT COALESCE(max(seq), 0) FROM events WHERE stream = $1", stream)
	if err != nil {
		return 0, fmt.Errorf("read last event of stream %q: %w", stream, err)
	}
	return n, nil
}

// streamEnd holds the number of the last event in a stream.
type streamEnd struct {
	Stream string
	Seq    int64
}

func (s *streamEnd) fields() []any { return []any{&s.Stream, &s.Seq} }

// LastOfEach returns the number of the last event in each of up to [MaxRead]
// streams. It omits empty streams. Callers poll it to find changes whose
// notification was lost.
func (t Events) LastOfEach(ctx context.Context, streams []string) (map[string]int64, error) {
	if len(streams) > MaxRead {
		return nil, fmt.Errorf("read last events: %w: %d streams, limit %d", ErrInvalid, len(streams), MaxRead)
	}
	out := make(map[string]int64, len(streams))
	if len(streams) == 0 {
		return out, nil
	}
	ends, err := queryAll[streamEnd](ctx, t.c, "SELECT stream, max(seq) FROM events WHERE stream IN ("+placeholders(1, len(streams))+") GROUP BY stream", toArgs(streams)...)
	if err != nil {
		return nil, fmt.Errorf("read last events: %w", err)
	}
	for _, e := range ends {
		out[e.Stream] = e.Seq
	}
	return out, nil
}

// Delete deletes a stream. A later Append that continues it fails.
func (t Events) Delete(ctx context.Context, stream string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		if _, err := c.exec(ctx, "DELETE FROM events WHERE stream = $1", stream); err != nil {
			return err
		}
		session, _, _ := strings.Cut(stream, "/")
		_, err := c.exec(ctx, "DELETE FROM stream_sizes WHERE session = $1 AND stream = $2", session, stream)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete event stream %q: %w", stream, err)
	}
	return nil
}
