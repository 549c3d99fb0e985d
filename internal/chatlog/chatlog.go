// Package chatlog stores the conversations of the terminal chat, one file per
// conversation in a user's directory. Package session defines their content.
// Start reading at [Dir].
package chatlog

import (
	"bufio"
	"bytes"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/editdistance"
	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/transcript"
	"github.com/loadout-dev/loadout/llm"
	"github.com/loadout-dev/loadout/session"
)

// Dir is the path of a directory of conversations. It need not exist.
type Dir string

// Entry describes a saved conversation.
type Entry struct {
	ID   string
	Last time.Time // time of the last change
}

var (
	// ErrName is returned for an invalid conversation ID.
	ErrName = errors.New("invalid conversation name")
	// ErrNotFound is returned if no conversation has the given ID.
	ErrNotFound = errors.New("conversation not found")
)

const suffix = ".jsonl"

var validID = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$`)

// ValidID reports whether id is a valid conversation ID.
func ValidID(id string) bool { return validID.MatchString(id) }

func (d Dir) file(id string) string { return filepath.Join(string(d), id+suffix) }

// List returns all nonempty conversations, newest first.
func (d Dir) List() ([]Entry, error) {
	all, err := os.ReadDir(string(d))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	var out []Entry
	for _, e := range all {
		id, ok := strings.CutSuffix(e.Name(), suffix)
		info, err := e.Info()
		if ok && err == nil && info.Mode().IsRegular() && ValidID(id) && info.Size() > 0 {
			out = append(out, Entry{id, info.ModTime()})
		}
	}
	slices.SortFunc(out, func(x, y Entry) int { return y.Last.Compare(x.Last) })
	return out, nil
}

// Open opens a conversation's log and returns the conversation's ID. If id is
// "", it creates a conversation. It returns [ErrName], [ErrNotFound],
// [session.ErrInUse], or another error if the file cannot be read.
func (d Dir) Open(id string) (*session.FileLog, string, error) {
	if id == "" {
		id = time.Now().Format("20060102-150405-") + strings.ToLower(rand.Text()[:5])
	} else if !ValidID(id) {
		return nil, "", ErrName
	} else if _, err := os.Stat(d.file(id)); err != nil {
		return nil, "", ErrNotFound
	}
	log, err := session.OpenFileLog(d.file(id))
	return log, id, err
}

// Contains reports whether a conversation with this ID exists.
func (d Dir) Contains(id string) bool {
	_, err := os.Lstat(d.file(id))
	return err == nil
}

// Import creates a conversation with the events that write appends to its log.
// If write returns an error or the program is killed, no conversation is
// created. If a conversation with this ID exists, the error wraps
// [fs.ErrExist].
func (d Dir) Import(id string, write func(session.Log) error) error {
	if !ValidID(id) {
		return ErrName
	}
	if err := os.MkdirAll(string(d), 0o700); err != nil {
		return err
	}
	temp, err := os.CreateTemp(string(d), ".import-*")
	if err != nil {
		return err
	}
	defer os.Remove(temp.Name())
	if err := temp.Close(); err != nil {
		return err
	}
	log, err := session.OpenFileLog(temp.Name())
	if err != nil {
		return err
	}
	if err := errors.Join(write(log), log.Close()); err != nil {
		return err
	}
	if d.Contains(id) {
		return fmt.Errorf("import conversation %s: %w", id, fs.ErrExist)
	}
	return os.Rename(temp.Name(), d.file(id))
}

// maxScan is the maximum number of bytes searched for the first message.
const maxScan = 256 << 10

// FirstMessage returns the user's first message in a conversation, or its start
// if the message is long. It returns "" if the message cannot be read.
func (d Dir) FirstMessage(id string) string {
	f, err := os.Open(d.file(id))
	if err != nil {
		return ""
	}
	defer f.Close()
	size := int64(maxScan)
	if info, err := f.Stat(); err == nil {
		size = min(info.Size(), size) // most conversations are short
	}
	lines := bufio.NewReaderSize(io.LimitReader(f, maxScan), int(size))
	for {
		text, err := lines.ReadSlice('\n')
		if e, ok := parseStart(text); ok && e.Message != nil && e.Message.Role == llm.User {
			return e.Message.Text
		}
		if err != nil {
			return ""
		}
	}
}

// parseStart parses an event. If the JSON is truncated within the text of a
// message, the parsed message contains the text up to that point.
func parseStart(text []byte) (e session.Event, ok bool) {
	if json.Unmarshal(text, &e) == nil {
		return e, true
	}
	const maxEscape = len(`\ud83d\ude0`) // incomplete escapes at the end
	for cut := range min(maxEscape, len(text)) + 1 {
		start := append(bytes.Clone(text[:len(text)-cut]), `"}}`...)
		if e = (session.Event{}); json.Unmarshal(start, &e) == nil {
			if e.Message != nil {
				e.Message.Text = strings.TrimRight(e.Message.Text, "\ufffd")
			}
			return e, true
		}
	}
	return session.Event{}, false
}

// Similar returns the IDs of conversations that contain id or are similar to
// it.
func Similar(all []Entry, id string) []string {
	var out []string
	want := editdistance.Normalize(id)
	for _, e := range all {
		if strings.Contains(e.ID, id) || editdistance.Distance(want, editdistance.Normalize(e.ID), 3) <= 3 {
			out = append(out, e.ID)
		}
	}
	return out
}

// Folder returns the working directory recorded when the conversation started,
// or "" if none was recorded.
func Folder(ctx context.Context, log session.Log) (string, error) {
	events, err := log.Read(ctx, 0)
	if err != nil {
		return "", err
	}
	for _, e := range slices.Backward(events) {
		if e.Start != nil && e.Start.Folder != "" {
			return e.Start.Folder, nil
		}
	}
	return "", nil
}

// Markdown renders a conversation with its tool calls as Markdown. The text may
// contain terminal control characters.
func Markdown(id string, events []session.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "# Conversation %s\n", id)
	for i := range events {
		b.WriteString(transcript.Markdown(&events[i]))
	}
	return b.String()
}
