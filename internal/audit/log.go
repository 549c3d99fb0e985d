// Package audit writes the decisions of package policy to a log file: which
// script or tool was allowed, for whom, and why. It makes no decisions and
// stores no secrets. Start reading at [Log].
package audit

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
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/privatefile"
	"github.com/loadout-dev/loadout/policy"
)

// Limits on a record and on reading the log. maxText is the maximum length of
// each string in bytes.
const (
	maxText     = 1024
	maxDetails  = 32
	maxProblems = 256
	maxLine     = 1 << 20
	readBlock   = 64 << 10
)

// Log is a log file with one JSON record per line. Several processes of one
// user can append to it at the same time. Only that user can read it. If the
// file is a symlink, or if the file or its directory belongs to another user or
// is writable by others, methods return a [*privatefile.UnsafeError]. The file
// stays open between appends. If it was moved or removed, the next append
// creates a new file. Log is safe for concurrent use.
//
// A record survives a crash of the process. It may be lost in a power failure,
// because appends are not synced.
type Log struct {
	path string
	sem  chan struct{} // held while a record is appended; guards the fields below
	file *os.File      // nil before the first append and after a failure
	info fs.FileInfo   // identifies file
	// complete is the size of file after this Log wrote a whole line, or 0. A file
	// of another size may end with an incomplete line.
	complete int64
}

// New returns the log at path. Append creates the file if necessary.
func New(path string) *Log { return &Log{path: path, sem: make(chan struct{}, 1)} }

// Append adds a record. It truncates long strings, escapes unprintable
// characters, and keeps only the first 32 details, sorted by name. If the
// verdict is invalid, it returns an error.
func (a *Log) Append(ctx context.Context, r policy.Record) error {
	if r.Decision != policy.Allow && r.Decision != policy.Deny && r.Decision != policy.Ask {
		return fmt.Errorf("append to audit log: unknown verdict %.50q", r.Decision)
	}
	if err := a.append(ctx, truncate(r)); err != nil {
		return fmt.Errorf("append to audit log: %w", err)
	}
	return nil
}

func (a *Log) append(ctx context.Context, r policy.Record) error {
	select {
	case a.sem <- struct{}{}:
		defer func() { <-a.sem }()
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
		a.closeFile() // also releases the lock
	}
	return err
}

// lock opens and locks the file that is currently at the path. It returns the
// size of the file.
func (a *Log) lock(ctx context.Context) (int64, error) {
	for range 100 { // retry if the file was replaced in the meantime
		if a.file == nil {
			if err := a.reopen(); err != nil {
				return 0, err
			}
		}
		err := filelock.Lock(ctx, a.file)
		if err == nil {
			var now fs.FileInfo
			if now, err = a.statLog(); err == nil && os.SameFile(now, a.info) {
				return now.Size(), nil
			}
		}
		a.closeFile()
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return 0, err
		}
	}
	return 0, privatefile.ErrReplaced
}

// reopen opens the file, creating it if necessary.
func (a *Log) reopen() error {
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

// statLog checks the directory and the file at the path, and returns the file's
// info.
func (a *Log) statLog() (fs.FileInfo, error) {
	dir := filepath.Dir(a.path)
	info, err := os.Lstat(dir)
	if err == nil {
		err = privatefile.CheckInfo(dir, info, fs.ModeDir)
	}
	if err != nil {
		return nil, err
	}
	if info, err = os.Lstat(a.path); err != nil {
		return nil, err
	}
	return info, privatefile.CheckInfo(a.path, info, 0)
}

func (a *Log) closeFile() {
	if a.file != nil {
		a.file.Close()
		a.file, a.complete = nil, 0
	}
}

// write appends a record in a single write. size is the file's current size.
func (a *Log) write(r policy.Record, size int64) error {
	if r.Time.IsZero() {
		r.Time = time.Now() // set while locked, so that records are in order of time
	}
	r.Time = r.Time.UTC().Round(0)
	var line bytes.Buffer
	torn, err := false, error(nil)
	if size != a.complete {
		torn, err = endsMidLine(a.file, size)
	}
	if err != nil {
		return err
	}
	if torn { // leave the incomplete line of a killed process or a full disk as a separate line
		line.WriteByte('\n')
	}
	enc := json.NewEncoder(&line)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(r); err != nil {
		return err
	}
	n, err := a.file.Write(line.Bytes())
	if err == nil {
		a.complete = size + int64(n)
	}
	return err
}

func (a *Log) open(flag int) (*os.File, error) {
	root, err := privatefile.OpenDir(filepath.Dir(a.path))
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return privatefile.OpenFile(root, filepath.Base(a.path), a.path, flag)
}

func endsMidLine(f *os.File, size int64) (bool, error) {
	if size == 0 {
		return false, nil
	}
	var last [1]byte
	_, err := f.ReadAt(last[:], size-1)
	return last[0] != '\n', err
}

// truncate shortens the strings of a record and escapes unprintable characters.
func truncate(r policy.Record) policy.Record {
	cut := func(s string) string { return printable.Text(s, maxText) }
	r.Principal = policy.Principal{ID: cut(r.Principal.ID), Kind: cut(r.Principal.Kind)}
	r.Action, r.Subject, r.Name, r.Reason = cut(r.Action), policy.Digest(cut(string(r.Subject))), cut(r.Name), cut(r.Reason)
	details := make(map[string]string, min(len(r.Details), maxDetails))
	for i, key := range slices.Sorted(maps.Keys(r.Details)) {
		if i == maxDetails {
			break
		}
		details[printable.Text(key, 100)] = cut(r.Details[key])
	}
	r.Details = details
	return r
}

// Read returns the last n records, oldest first, and a problem for each damaged
// line that it reads. It ignores an incomplete last line. If there is no log
// file, it returns no records.
func (a *Log) Read(ctx context.Context, n int) ([]policy.Record, []policy.Problem, error) {
	f, err := a.open(os.O_RDONLY)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("read audit log: %w", err)
	}
	defer f.Close()
	t := tailReader{path: a.path, want: n}
	if err := t.read(ctx, f); err != nil {
		return nil, nil, fmt.Errorf("read audit log: %w", err)
	}
	slices.Reverse(t.records)
	slices.Reverse(t.problems)
	return t.records, t.problems, nil
}

// tailReader reads a log backward from its end, block by block.
type tailReader struct {
	path      string
	want      int
	rest      []byte // end of a line whose beginning has not been read yet
	lineEnded bool   // whether rest is followed by a line feed
	tooLong   bool   // whether the line exceeds maxLine and is dropped
	records   []policy.Record
	problems  []policy.Problem
}

func (t *tailReader) read(ctx context.Context, f *os.File) error {
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
		t.addBlock(block)
		if end = begin; end == 0 {
			t.addLine(t.rest)
		}
	}
	return nil
}

// addBlock processes the block that precedes the last one read.
func (t *tailReader) addBlock(b []byte) {
	for len(t.records) < t.want {
		i := bytes.LastIndexByte(b, '\n')
		if i < 0 {
			break
		}
		t.addLine(append(bytes.Clone(b[i+1:]), t.rest...))
		t.rest, t.tooLong, t.lineEnded = nil, false, true
		b = b[:i]
	}
	if t.tooLong = t.tooLong || len(b)+len(t.rest) > maxLine; t.tooLong {
		t.rest = nil
	} else {
		t.rest = append(bytes.Clone(b), t.rest...)
	}
}

// addLine parses a line. It ignores the last line of the log if that line does
// not end with a line feed.
func (t *tailReader) addLine(line []byte) {
	if !t.lineEnded || len(t.records) >= t.want || len(line) == 0 && !t.tooLong {
		return
	}
	var r policy.Record
	err := json.Unmarshal(line, &r)
	if t.tooLong || len(line) > maxLine {
		err = fmt.Errorf("line too long (limit %d bytes)", maxLine)
	}
	if err != nil {
		if len(t.problems) < maxProblems {
			t.problems = append(t.problems, policy.Problem{Where: t.path, Message: "damaged line: " + printable.Text(err.Error(), 300)})
		}
		return
	}
	t.records = append(t.records, r)
}
