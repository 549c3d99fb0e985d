package store

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
)

// Event is an entry in a stream. The events in a stream are numbered without
// gaps, starting at 1.
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

// Events stores append-only streams, each identified by its name. The name of a
// session's stream is the session's id, or starts with this id and a slash;
// [Storage] counts these streams.
type Events struct{ c conn }

// Append adds events to a stream, all or none, and returns the number of the
// last one. It fails with [ErrConflict] unless after is the number of the last
// event in the stream. Of several concurrent calls with the same number, only
// one succeeds.
func (t Events) Append(ctx context.Context, stream string, after int64, events ...Event) (int64, error) {
	if err := t.AppendAll(ctx, NewEvents{stream, after, events}); err != nil {
		return 0, err
	}
	return after + int64(len(events)), nil
}

// NewEvents holds events to append to a stream whose last event has the number
// After.
type NewEvents struct {
	Stream string
	After  int64
	Events []Event
}

// AppendAll adds events to several streams, all or none. The streams must be
// distinct. AppendAll fails as [Events.Append] does if one of the streams does not
// end at the expected event. It accepts up to [MaxAppend] events in total.
func (t Events) AppendAll(ctx context.Context, all ...NewEvents) error {
	n := 0
	for _, a := range all {
		n += len(a.Events)
	}
	if n == 0 {
		return nil
	}
	if n > MaxAppend {
		return fmt.Errorf("append to event stream %q: %w: %d events, limit %d", all[0].Stream, ErrInvalid, n, MaxAppend)
	}
	err := t.c.inTransaction(ctx, func(c conn) error {
		query, args := appendSQL(all)
		added, err := c.exec(ctx, query, args...)
		if err == nil && added < int64(n) || errors.Is(err, ErrExists) {
			return fmt.Errorf("%w: last event of a stream differs from the expected one", ErrConflict)
		}
		if err != nil {
			return err
		}
		return c.addStreamSizes(ctx, all)
	})
	if err != nil {
		return fmt.Errorf("append to event stream %q: %w", all[0].Stream, err)
	}
	return nil
}

// addStreamSizes adds the sizes of new events to the sizes of their streams.
func (c conn) addStreamSizes(ctx context.Context, all []NewEvents) error {
	var args []any
	var rows []string
	for _, a := range all {
		if len(a.Events) == 0 {
			continue
		}
		var bytes int
		for _, e := range a.Events {
			bytes += len(e.Data)
		}
		session, _, _ := strings.Cut(a.Stream, "/")
		p := len(args)
		rows = append(rows, fmt.Sprintf("($%d, $%d, $%d)", p+1, p+2, p+3))
		args = append(args, session, a.Stream, bytes)
	}
	_, err := c.exec(ctx, `INSERT INTO stream_sizes (session, stream, bytes) VALUES `+strings.Join(rows, ", ")+`
		ON CONFLICT (session, stream) DO UPDATE SET bytes = stream_sizes.bytes + excluded.bytes`, args...)
	return err
}

// appendSQL returns a statement that adds events to the streams that still end at
// the expected event. If two such statements run at the same time, the primary key
// rejects one of them.
func appendSQL(all []NewEvents) (string, []any) {
	var args []any
	var rows []string
	for _, a := range all {
		s := len(args)
		if len(a.Events) > 0 {
			args = append(args, a.Stream, a.After)
		}
		for i := range a.Events {
			e := &a.Events[i]
			setDefaultTime(&e.Created)
			p := len(args)
			rows = append(rows, fmt.Sprintf(
				"SELECT CAST($%[1]d AS TEXT), CAST($%[3]d AS BIGINT), CAST($%[4]d AS TEXT), CAST($%[5]d AS TEXT), CAST($%[6]d AS BIGINT) WHERE"+
					" (SELECT COALESCE(max(seq), 0) FROM events WHERE stream = $%[1]d) = $%[2]d", s+1, s+2, p+1, p+2, p+3, p+4))
			args = append(args, a.After+1+int64(i), e.Kind, jsonText(e.Data), timestamp(e.Created))
		}
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

// ReadKind is like [Events.Read], but returns only events of one kind.
func (t Events) ReadKind(ctx context.Context, stream, kind string, after int64, limit int) ([]Event, error) {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	events, err := queryAll[Event](ctx, t.c, "SELECT "+eventColumns+" FROM events WHERE stream = $1 AND seq > $2 AND kind = $3 ORDER BY seq LIMIT $4", stream, after, kind, limit)
	if err != nil {
		return nil, fmt.Errorf("read events of kind %q of event stream %q: %w", kind, stream, err)
	}
	return events, nil
}

// ReadBranched is like [Events.Read], but returns only events of the kind
// "branched", of which a stream has few.
func (t Events) ReadBranched(ctx context.Context, stream string, after int64, limit int) ([]Event, error) {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	events, err := queryAll[Event](ctx, t.c, branchedSQL, stream, after, limit)
	if err != nil {
		return nil, fmt.Errorf("read branches of event stream %q: %w", stream, err)
	}
	return events, nil
}

// ReadMessagesBefore returns the last events of the kind "message" of a stream before
// an event, newest first.
func (t Events) ReadMessagesBefore(ctx context.Context, stream string, before int64, limit int) ([]Event, error) {
	if limit <= 0 || limit > MaxRead {
		limit = MaxRead
	}
	events, err := queryAll[Event](ctx, t.c, "SELECT "+eventColumns+" FROM events WHERE stream = $1 AND seq < $2 AND kind = 'message' ORDER BY seq DESC LIMIT $3", stream, before, limit)
	if err != nil {
		return nil, fmt.Errorf("read messages of event stream %q: %w", stream, err)
	}
	return events, nil
}

// branchedSQL names the kind literally, because the index events_branched
// contains no other.
const branchedSQL = "SELECT " + eventColumns + " FROM events WHERE stream = $1 AND seq > $2 AND kind = 'branched' ORDER BY seq LIMIT $3"

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
