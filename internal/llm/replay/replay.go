// Package replay records requests to a model with their responses, and replays
// them. A replayed model costs nothing, needs no key and always gives the same
// response.
//
// [Record] wraps a model. It stores each request in a file whose name is
// derived from the digest of the request. The file contains the request as
// readable JSON and the events of the response. If a request is repeated, its
// file is replaced. [Open] returns a model that responds to the requests
// recorded in a directory. For any other request it returns an [*UnknownError],
// which describes the first difference.
//
// A file contains the whole conversation, so only its owner can read it. It
// contains no keys, URLs or headers, because implementations of [llm.Model]
// hide them. The response in a file may be edited, but not the request, because
// the file name depends on it.
//
// The package opens no connections and does not retry.
package replay

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"strings"

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/llm"
)

// Limits on a directory of recordings, which may be untrusted.
const (
	maxFiles = 20_000
	maxFile  = 32 << 20  // bytes
	maxAll   = 512 << 20 // bytes of all files together
)

// fileName matches the file names of recordings. A name contains only half of a
// digest, which is enough to distinguish recordings.
var fileName = lazyregexp.New(`^[0-9a-f]{32}\.json$`)

// recording is the JSON content of a file: a request and its response.
type recording struct {
	Model   string   `json:"model"`
	Request request  `json:"request"`
	Events  []event  `json:"events,omitempty"`
	Answer  *answer  `json:"answer,omitempty"` // the received part of the response
	Failed  *failure `json:"failed,omitempty"`
}

// Model responds to requests from recordings. It is safe for concurrent use.
type Model struct {
	name  string
	known map[string]*recording // recordings by file name
	order []string              // sorted file names
}

var _ llm.Model = (*Model)(nil)

// Open reads the recordings in a directory, ignoring other files. It returns an
// error if there are no recordings, or if they belong to different models. It
// also returns an error if any file cannot be read or does not match its name.
func Open(dir string) (*Model, error) {
	m, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("open recordings in %s: %w", dir, err)
	}
	if len(m.known) == 0 {
		return nil, fmt.Errorf("open recordings in %s: no recordings found", dir)
	}
	return m, nil
}

func open(dir string) (*Model, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	names, err := list(root)
	if err != nil {
		return nil, err
	}
	m := &Model{known: map[string]*recording{}, order: names}
	left := int64(maxAll)
	for _, name := range names {
		data, err := read(root, name, min(left, maxFile))
		if err != nil {
			return nil, err
		}
		left -= int64(len(data))
		r, err := decode(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if want := r.Request.file(); want != name {
			return nil, fmt.Errorf("%s: request changed (hash is now %s); record the conversation again", name, want)
		}
		if m.name = cmp.Or(m.name, r.Model); m.name != r.Model {
			return nil, fmt.Errorf("%s is a recording of %s, but others are of %s; use one directory per model", name, r.Model, m.name)
		}
		m.known[name] = r
	}
	return m, nil
}

// list returns the sorted file names of the recordings in a directory.
func list(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if fileName.MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("too many recordings (%d, limit %d)", len(names), maxFiles)
	}
	return names, nil
}

func read(root *os.Root, name string, limit int64) ([]byte, error) {
	f, err := root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if info, err := f.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, errors.Join(err, fmt.Errorf("not a regular file: %s", name))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s too large (limit %d MiB per file, %d MiB in total)", name, maxFile>>20, maxAll>>20)
	}
	return data, err
}

func decode(data []byte) (*recording, error) {
	var r recording
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&r); err != nil {
		return nil, err
	}
	if _, err := dec.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("unexpected data after the recording")
	}
	return &r, r.check()
}

// check returns an error if the recording is invalid.
func (r *recording) check() error {
	if vendor, name, _ := strings.Cut(r.Model, ":"); vendor == "" || name == "" {
		return fmt.Errorf("invalid model name %q, want vendor:name", r.Model)
	}
	if (r.Answer == nil) == (r.Failed == nil || r.Failed.Refused == nil) {
		return errors.New("recording must have exactly one of answer or refusal")
	}
	return errors.Join(r.Request.check(), r.Answer.check(), checkEvents(r.Events))
}

// Name returns the name of the recorded model.
func (m *Model) Name() string { return m.name }

// Stream implements [llm.Model]. It yields the recorded events and the recorded
// error, if any. If the request was not recorded, it returns an
// [*UnknownError].
func (m *Model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		asked, err := newRequest(r)
		if err != nil {
			yield(nil, err)
			return
		}
		known := m.known[asked.file()]
		if known == nil {
			yield(nil, m.unknownError(asked))
			return
		}
		var answer llm.Answer
		for _, e := range known.Events {
			if ctx.Err() != nil {
				yield(nil, contextError(ctx, answer))
				return
			}
			if !yield(e.event(), nil) {
				return
			}
			answer.Message.Role = llm.Assistant
			if e.Text != nil {
				answer.Message.Parts = []llm.Part{llm.Text(answer.Message.Text() + *e.Text)}
			}
		}
		if ctx.Err() != nil {
			yield(nil, contextError(ctx, answer))
			return
		}
		if known.Failed != nil {
			yield(nil, known.Failed.err(known.Answer))
			return
		}
		yield(llm.Done{Answer: known.Answer.answer()}, nil)
	}
}

// contextError returns the error of a stream whose context is done.
func contextError(ctx context.Context, answer llm.Answer) error {
	if answer.Message.Role == "" {
		return context.Cause(ctx)
	}
	return &llm.CutError{Answer: answer, Err: context.Cause(ctx)}
}

// Digest returns "sha256:" and the hexadecimal hash of everything in a request
// that a model receives. It replaces invalid UTF-8 with U+FFFD. It returns an
// error if a tool's schema is not valid JSON.
func Digest(r *llm.Request) (string, error) {
	q, err := newRequest(r)
	if err != nil {
		return "", err
	}
	return "sha256:" + q.digest(), nil
}

func (q *request) digest() string {
	sum := sha256.Sum256(encode(q))
	return hex.EncodeToString(sum[:])
}

func (q *request) file() string { return q.digest()[:32] + ".json" }

// encode returns the JSON encoding of a value as stored in a file.
func encode(v any) []byte {
	data, err := plainjson.Indented(v)
	if err != nil {
		panic(err) // the value was validated before
	}
	return data
}
