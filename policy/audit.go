package policy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
)

// Verdicts of records.
const (
	Allowed = "allow"
	Denied  = "deny"
	Asked   = "ask" // a person was asked, whose answer is a record of its own
)

// Record is one entry of the audit log. Whoever makes one sees to it that no
// value of a secret is in it, only names.
type Record struct {
	Time      time.Time         `json:"time"` // set by Append where it is zero
	Principal Principal         `json:"principal"`
	Action    string            `json:"action"` // "run", "approve", "revoke" …
	Subject   Digest            `json:"subject,omitempty"`
	Name      string            `json:"name,omitempty"`
	Decision  string            `json:"decision"` // one of the verdicts
	Reason    string            `json:"reason,omitempty"`
	Details   map[string]string `json:"details,omitempty"`
}

// Limits of what is kept of a record; of each string in bytes.
const (
	maxText      = 1024
	maxDetails   = 32
	maxAuditLine = 1 << 20
	readBlock    = 64 << 10
)

// Audit is a file of records, one JSON document a line, to which any number of
// processes of one user append at once. It is readable by the user only, and
// refused with an [*UnsafeError] where it is a symbolic link, or it or its
// directory belongs to another user or can be written by others. The file stays
// open between appends; one that was moved away or removed by then is left, and
// the next record begins another at the path. It is safe for concurrent use.
//
// A record survives the end of the process at any time; one that the system
// has not written to disk yet may be lost with the power.
type Audit struct {
	path string
	turn chan struct{} // held while a record is appended; guards what follows
	file *os.File      // opened last; nil before, and after a failure
	info fs.FileInfo   // which file that is
}

// NewAudit returns the log in the file at path, which Append makes where it is
// missing.
func NewAudit(path string) *Audit { return &Audit{path: path, turn: make(chan struct{}, 1)} }

// Append adds a record, of which long texts are cut with a note, and
// characters that do not show are spelled out. Of more than 32 details the
// first 32 by name are kept. It fails where the verdict is none.
func (a *Audit) Append(ctx context.Context, r Record) error {
	if r.Decision != Allowed && r.Decision != Denied && r.Decision != Asked {
		return fmt.Errorf("append to the audit log: %.50q is no verdict", r.Decision)
	}
	if err := a.append(ctx, r.bounded()); err != nil {
		return fmt.Errorf("append to the audit log: %w", err)
	}
	return nil
}

func (a *Audit) append(ctx context.Context, r Record) error {
	select {
	case a.turn <- struct{}{}:
		defer func() { <-a.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	size, err := a.lock(ctx)
	if err != nil {
		return err
	}
	err = a.write(r, size)
	if err == nil {
		err = filelock.Unlock(a.file)
	}
	if err != nil {
		a.drop() // and the lock with it
	}
	return err
}

// lock takes the file that is at the path now, and returns its size. Without an
// error the lock is held.
func (a *Audit) lock(ctx context.Context) (int64, error) {
	for range 100 { // each time it was moved away in between
		if a.file == nil {
			if err := a.begin(); err != nil {
				return 0, err
			}
		}
		err := filelock.Wait(ctx, a.file)
		if err == nil {
			var now fs.FileInfo
			if now, err = a.look(); err == nil && os.SameFile(now, a.info) {
				return now.Size(), nil
			}
		}
		a.drop()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return 0, errReplaced
}

// begin opens the file, and makes it where it is missing.
func (a *Audit) begin() error {
	if err := os.MkdirAll(filepath.Dir(a.path), 0o700); err != nil {
		return err
	}
	f, err := a.open(os.O_RDWR | os.O_APPEND | os.O_CREATE)
	if err != nil {
		return err
	}
	if a.info, err = f.Stat(); err != nil {
		f.Close()
		return err
	}
	a.file = f
	return nil
}

// look says what is at the path, where that and its directory can be trusted.
func (a *Audit) look() (fs.FileInfo, error) {
	dir := filepath.Dir(a.path)
	info, err := os.Lstat(dir)
	if err == nil {
		err = checkInfo(dir, info, fs.ModeDir)
	}
	if err != nil {
		return nil, err
	}
	if info, err = os.Lstat(a.path); err != nil {
		return nil, err
	}
	return info, checkInfo(a.path, info, 0)
}

func (a *Audit) drop() {
	if a.file != nil {
		a.file.Close()
		a.file = nil
	}
}

// write adds a record to the file, which has size bytes, with one write.
func (a *Audit) write(r Record, size int64) error {
	if r.Time.IsZero() {
		r.Time = time.Now() // with the lock: lines are in the order of time
	}
	r.Time = r.Time.UTC().Round(0)
	var line bytes.Buffer
	torn, err := endsTorn(a.file, size)
	if err != nil {
		return err
	}
	if torn { // what a process left that was killed, or had no room, stays a line of its own
		line.WriteByte('\n')
	}
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	_, err = a.file.Write(line.Bytes())
	return err
}

func (a *Audit) open(flag int) (*os.File, error) {
	root, err := openDir(filepath.Dir(a.path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return openFile(root, filepath.Base(a.path), a.path, flag)
}

func endsTorn(f *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return last[0] != '\n', err
}

func (r Record) bounded() Record {
	cut := func(s string) string { return visible(s, maxText) }
	r.Principal = Principal{ID: cut(r.Principal.ID), Kind: cut(r.Principal.Kind)}
	r.Action, r.Subject, r.Name, r.Reason = cut(r.Action), Digest(cut(string(r.Subject))), cut(r.Name), cut(r.Reason)
	details := make(map[string]string, min(len(r.Details), maxDetails))
	for i, key := range slices.Sorted(maps.Keys(r.Details)) {
		if i == maxDetails {
			break
		}
		details[visible(key, 100)] = cut(r.Details[key])
	}
	r.Details = details
	return r
}

// Read returns the last n records, the oldest first, and what is wrong with
// lines between them. A last line that is not whole is being written, or was
// when its process was killed, and is left out. Where there is no log there
// are no records.
func (a *Audit) Read(ctx context.Context, n int) ([]Record, []Problem, error) {
	f, err := a.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read the audit log: %w", err)
	}
	defer f.Close()
	t := tail{path: a.path, want: n}
	if err := t.read(ctx, f); err != nil {
		return nil, nil, fmt.Errorf("read the audit log: %w", err)
	}
	slices.Reverse(t.records)
	slices.Reverse(t.problems)
	return t.records, t.problems, nil
}

// tail reads a log from its end.
type tail struct {
	path     string
	want     int
	rest     []byte // of a line whose beginning was not read yet
	rested   bool   // rest follows by the end of its line
	long     bool   // rest is more than a line can be, and dropped
	records  []Record
	problems []Problem
}

func (t *tail) read(ctx context.Context, f *os.File) error {
	info, err := f.Stat()
	if err != nil {
		return err
	}
	for end := info.Size(); end > 0 && len(t.records) < t.want; {
		if err := context.Cause(ctx); err != nil {
			return err
		}
		begin := max(0, end-readBlock)
		block := make([]byte, end-begin)
		if _, err := f.ReadAt(block, begin); err != nil && !errors.Is(err, io.EOF) {
			return err
		}
		t.block(block)
		if end = begin; end == 0 {
			t.line(t.rest)
		}
	}
	return nil
}

// block takes the bytes before those it was given last.
func (t *tail) block(b []byte) {
	for len(t.records) < t.want {
		i := bytes.LastIndexByte(b, '\n')
		if i < 0 {
			break
		}
		t.line(append(bytes.Clone(b[i+1:]), t.rest...))
		t.rest, t.long, t.rested = nil, false, true
		b = b[:i]
	}
	if t.long = t.long || len(b)+len(t.rest) > maxAuditLine; t.long {
		t.rest = nil
	} else {
		t.rest = append(bytes.Clone(b), t.rest...)
	}
}

// line takes a line, which is whole where it is not the last.
func (t *tail) line(line []byte) {
	if !t.rested || len(t.records) >= t.want || len(line) == 0 && !t.long {
		return
	}
	var r Record
	err := json.Unmarshal(line, &r)
	if t.long {
		err = fmt.Errorf("it has more than %d bytes", maxAuditLine)
	}
	if err != nil {
		if len(t.problems) < maxList {
			t.problems = append(t.problems, Problem{Where: t.path, Message: "a line is damaged: " + visible(err.Error(), 300)})
		}
		return
	}
	t.records = append(t.records, r)
}
