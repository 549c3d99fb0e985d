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
	"slices"
	"sync"
)

// Log keeps the events of one session in order. Implementations are safe for
// concurrent use.
type Log interface {
	// Append adds events, giving each its sequence number in place. Either
	// all of them are kept or none.
	Append(ctx context.Context, events ...*Event) error
	// Read returns the events after the sequence number, in order.
	Read(ctx context.Context, after int64) ([]Event, error)
}

// Memory is a log that ends with the process. The zero value is empty.
type Memory struct {
	mu     sync.Mutex
	events []Event
}

var _ Log = (*Memory)(nil)

// Append adds events.
func (m *Memory) Append(_ context.Context, events ...*Event) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, e := range events {
		e.Seq = int64(len(m.events)) + 1
		m.events = append(m.events, *e)
	}
	return nil
}

// Read returns the events after the sequence number.
func (m *Memory) Read(_ context.Context, after int64) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if after < 0 || after > int64(len(m.events)) {
		return nil, nil
	}
	return slices.Clone(m.events[after:]), nil
}

// maxLine bounds one event in a file.
const maxLine = 64 << 20

// File is a log in a file with one JSON document a line. A last line that was
// cut off by a crash is dropped when the file is opened again. One process
// may have it open at a time.
type File struct {
	mu   sync.Mutex
	f    *os.File
	seq  int64
	size int64 // of what is known to be whole
}

var _ Log = (*File)(nil)

// OpenFile opens or creates the log at path, readable by its owner only.
// Close it when done.
func OpenFile(path string) (*File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open session log: %w", err)
	}
	l := &File{f: f}
	if err := l.recover(); err != nil {
		f.Close()
		return nil, fmt.Errorf("open session log %s: %w", path, err)
	}
	return l, nil
}

// recover finds the end of the last whole event and drops what is after it.
func (l *File) recover() error {
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

// Append adds events and does not return before the system has them.
func (l *File) Append(_ context.Context, events ...*Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	for i, e := range events {
		e.Seq = l.seq + int64(i) + 1
		if err := enc.Encode(e); err != nil {
			return fmt.Errorf("append to session log: %w", err)
		}
	}
	if _, err := l.f.WriteAt(buf.Bytes(), l.size); err != nil {
		return errors.Join(fmt.Errorf("append to session log: %w", err), l.f.Truncate(l.size))
	}
	l.size += int64(buf.Len())
	l.seq += int64(len(events))
	return nil
}

// Read returns the events after the sequence number.
func (l *File) Read(_ context.Context, after int64) ([]Event, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	events, _, err := readEvents(io.NewSectionReader(l.f, 0, l.size), after)
	if err != nil {
		return nil, fmt.Errorf("read session log: %w", err)
	}
	return events, nil
}

// Close closes the file.
func (l *File) Close() error { return l.f.Close() }

// readEvents reads whole lines until one that is cut off, and returns the
// events after the sequence number and the size of the whole lines.
func readEvents(r io.Reader, after int64) ([]Event, int64, error) {
	sc := bufio.NewReaderSize(r, 64<<10)
	var events []Event
	var size, seq int64
	for {
		line, err := sc.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return events, size, nil // what is left is no whole line
		}
		if err != nil {
			return nil, 0, err
		}
		var e Event
		if err := json.Unmarshal(line, &e); err != nil || len(line) > maxLine {
			return nil, 0, fmt.Errorf("the event after %d is damaged: %w", seq, err)
		}
		if e.Seq != seq+1 {
			return nil, 0, fmt.Errorf("event %d follows event %d", e.Seq, seq)
		}
		seq = e.Seq
		size += int64(len(line))
		if seq > after {
			events = append(events, e)
		}
	}
}
