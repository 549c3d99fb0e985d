package session

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// Log stores a session's events in order. Implementations must be safe for
// concurrent use and must not share mutable data with callers. A session does
// not close its log.
type Log interface {
	// Append appends events and sets their sequence numbers. The events of a
	// call are consecutive. If Append returns an error, none of the events is
	// stored. Without events, Append does nothing.
	Append(ctx context.Context, events ...*Event) error
	// Read returns the events whose sequence number is greater than after, in
	// order. If after is 0 or negative, these are all events. If there are
	// none, Read returns none and no error.
	Read(ctx context.Context, after int64) ([]Event, error)
}

// MemoryLog is a log in memory. The zero value is an empty log. A MemoryLog is
// safe for concurrent use and must not be copied after first use.
type MemoryLog struct {
	mu     sync.Mutex
	events []Event
}

var _ Log = (*MemoryLog)(nil)

// Append implements [Log]. It ignores the context and never returns an error.
func (m *MemoryLog) Append(_ context.Context, events ...*Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.Seq = int64(len(m.events)) + 1
		m.events = append(m.events, e.clone())
	}
	return nil
}

// Read implements [Log]. It ignores the context and never returns an error.
func (m *MemoryLog) Read(_ context.Context, after int64) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Event
	for _, e := range m.events[min(max(after, 0), int64(len(m.events))):] {
		out = append(out, e.clone())
	}
	return out, nil
}

// maxLine is the maximum size of an event in a file, in bytes.
const maxLine = 64 << 20

// ErrInUse is returned by [OpenFileLog] if the log is already open in this or
// another process.
var ErrInUse = errors.New("session is in use elsewhere")

// FileLog is a log in a file with a JSON document on each line. An event has at
// most 64 MiB of JSON. Opening the file removes an incomplete last line after a
// crash. If the crash happened while several events were appended, the first of
// them may be kept.
//
// A FileLog is safe for concurrent use. Use [OpenFileLog] to create one.
type FileLog struct {
	mu   sync.Mutex
	f    *os.File
	seq  int64
	size int64 // size of all complete events
}

var _ Log = (*FileLog)(nil)

// OpenFileLog opens or creates the log at path, with missing parent
// directories. Only the owner can access what it creates. The caller must close
// the log.
//
// OpenFileLog locks the file until [FileLog.Close]. The error wraps [ErrInUse]
// if the log is already open. On systems without file locks, the caller must
// prevent this. OpenFileLog also returns an error if a complete line is not a
// valid event.
func OpenFileLog(path string) (*FileLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	l := &FileLog{f: f}
	if err := l.recover(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open session log %s: %w", path, err)
	}
	return l, nil
}

// recover locks the file, finds the end of the last complete event and
// truncates the rest.
func (l *FileLog) recover() error {
	switch err := filelock.TryLock(l.f); {
	case errors.Is(err, filelock.ErrLocked):
		return ErrInUse
	case errors.Is(err, errors.ErrUnsupported): // without locks, the caller must prevent concurrent use
	case err != nil:
		return err
	}
	events, size, err := readEvents(l.f, 0)
	if err != nil {
		return err
	}
	if len(events) > 0 {
		l.seq = events[len(events)-1].Seq
	}
	l.size = size
	return l.f.Truncate(size)
}

// Append implements [Log]. It writes the events to the file before it returns,
// but does not sync the file to the disk. It returns an error if an event
// exceeds 64 MiB. It ignores the context.
func (l *FileLog) Append(_ context.Context, events ...*Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for i, e := range events {
		e.Seq = l.seq + int64(i) + 1
		before := buf.Len()
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("append to session log: %w", err)
		}
		if n := buf.Len() - before; n > maxLine {
			return fmt.Errorf("append to session log: event too large (%d bytes, limit %d)", n, maxLine)
		}
	}
	if _, err := l.f.WriteAt(buf.Bytes(), l.size); err != nil {
		err = fmt.Errorf("append to session log: %w", err)
		if cut := l.f.Truncate(l.size); cut != nil {
			err = errors.Join(err, cut)
		}
		return err
	}
	l.size += int64(buf.Len())
	l.seq += int64(len(events))
	return nil
}

// Read implements [Log]. It reads the whole file and ignores the context.
func (l *FileLog) Read(_ context.Context, after int64) ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, _, err := readEvents(io.NewSectionReader(l.f, 0, l.size), after)
	if err != nil {
		return nil, fmt.Errorf("read session log: %w", err)
	}
	return events, nil
}

// Close closes and unlocks the file. Later calls of Append and Close return an
// error that wraps [os.ErrClosed].
func (l *FileLog) Close() error { return l.f.Close() }

// readEvents reads complete lines and stops at an incomplete one. It returns
// the events after the given sequence number and the size of the complete
// lines.
func readEvents(r io.Reader, after int64) ([]Event, int64, error) {
	br := bufio.NewReaderSize(r, 64<<10)
	var events []Event
	var size, seq int64
	for {
		line, err := readLine(br)
		if errors.Is(err, io.EOF) {
			return events, size, nil // the rest is an incomplete line
		}
		var e Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("event after event %d is damaged: %w", seq, err)
		case e.Seq != seq+1:
			return nil, 0, fmt.Errorf("unexpected event %d after event %d", e.Seq, seq)
		}
		seq = e.Seq
		size += int64(len(line))
		if seq > after {
			events = append(events, e)
		}
	}
}

// readLine returns a line including its line feed. It returns [io.EOF] if the
// line is incomplete.
func readLine(br *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("log too large (limit %d bytes)", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, err
		}
	}
}
