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

// Log keeps the events of one session in order. Implementations are safe for
// concurrent use, and share nothing with their callers that can be changed.
type Log interface {
	// Append adds events, giving each its sequence number in place. Where it
	// returns an error, none of them is kept.
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
		m.events = append(m.events, e.clone())
	}
	return nil
}

// Read returns the events after the sequence number.
func (m *Memory) Read(_ context.Context, after int64) ([]Event, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []Event
	for _, e := range m.events[min(max(after, 0), int64(len(m.events))):] {
		out = append(out, e.clone())
	}
	return out, nil
}

// maxLine bounds one event in a file.
const maxLine = 64 << 20

// ErrInUse says that a log is open already, here or in another process.
var ErrInUse = errors.New("the session is open in another place")

// File is a log in a file with one JSON document a line. What a crash left of a
// last line is dropped when the file is opened again; where several events
// were being appended, the first of them may be kept.
type File struct {
	mu   sync.Mutex
	f    *os.File
	seq  int64
	size int64 // of what is known to be whole
}

var _ Log = (*File)(nil)

// OpenFile opens or creates the log at path, readable by its owner only. It
// fails with [ErrInUse] where the log is open already. Close it when done.
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
	switch err := filelock.Try(l.f); {
	case errors.Is(err, filelock.ErrLocked):
		return ErrInUse
	case errors.Is(err, errors.ErrUnsupported): // then its owner has to see to it
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

// Append adds events and does not return before the system has them.
func (l *File) Append(_ context.Context, events ...*Event) error {
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
			return fmt.Errorf("append to session log: an event has %d bytes, more than %d", n, maxLine)
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
	br := bufio.NewReaderSize(r, 64<<10)
	var events []Event
	var size, seq int64
	for {
		line, err := readLine(br)
		if errors.Is(err, io.EOF) {
			return events, size, nil // what is left is no whole line
		}
		var e Event
		if err == nil {
			err = json.Unmarshal(line, &e)
		}
		switch {
		case err != nil:
			return nil, 0, fmt.Errorf("the event after event %d is damaged: %w", seq, err)
		case e.Seq != seq+1:
			return nil, 0, fmt.Errorf("event %d follows event %d", e.Seq, seq)
		}
		seq = e.Seq
		size += int64(len(line))
		if seq > after {
			events = append(events, e)
		}
	}
}

// readLine returns a line with its end; [io.EOF] where it has none.
func readLine(br *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := br.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxLine:
			return nil, fmt.Errorf("it has more than %d bytes", maxLine)
		case errors.Is(err, bufio.ErrBufferFull):
		default:
			return line, err
		}
	}
}
