// Package replay keeps what a model was asked and what it answered in a directory of
// files, and answers from them afterwards: a model that costs nothing, needs no key
// and says the same each time.
//
// [Record] wraps a model. Each request becomes a file, named after the digest of the
// request, with the request in readable JSON and the events of the answer as they came.
// A request that is made again replaces its file. [Open] is a model that knows the
// requests of a directory; any other one is an [*UnknownError], which says what is
// different first.
//
// A file has what was said and nothing of how the vendor is reached: keys, addresses
// and headers are below [llm.Model], and never seen here. It does have the whole
// conversation, so it is readable for its owner alone. What was answered may be edited
// in a file; a request may not, as its name is made from it.
//
// The package opens no connection and repeats nothing.
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

	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/llm"
)

// The bounds of a directory, which may be anybody's.
const (
	maxFiles = 20_000
	maxFile  = 32 << 20  // bytes
	maxAll   = 512 << 20 // bytes, of all files together
)

// fileName is how recordings are named: half of a digest is enough to tell them apart.
var fileName = pattern.New(`^[0-9a-f]{32}\.json$`)

// recording is one file.
type recording struct {
	Model   string  `json:"model"`
	Request request `json:"request"`
	Events  []event `json:"events,omitempty"`
	Answer  *answer `json:"answer,omitempty"` // as far as it came
	Failed  *failed `json:"failed,omitempty"`
}

// Model answers from recordings. It is safe for concurrent use.
type Model struct {
	name  string
	known map[string]*recording // by the name of the file
	order []string              // of the names
}

var _ llm.Model = (*Model)(nil)

// Open reads the recordings in a directory, all of which must be of one model. Files
// with other names are left alone. It fails where there are none, where one cannot be
// read, or where its request is not the one that it is named after.
func Open(dir string) (*Model, error) {
	m, err := open(dir)
	if err != nil {
		return nil, fmt.Errorf("open recordings in %s: %w", dir, err)
	}
	if len(m.known) == 0 {
		return nil, fmt.Errorf("open recordings in %s: there are none", dir)
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
			return nil, fmt.Errorf("%s: its request was changed: it would be %s now; record it again", name, want)
		}
		if m.name = cmp.Or(m.name, r.Model); m.name != r.Model {
			return nil, fmt.Errorf("%s is of the model %s, others are of %s; keep each in a directory of its own", name, r.Model, m.name)
		}
		m.known[name] = r
	}
	return m, nil
}

// list are the names of the recordings of a directory, in order.
func list(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var names []string
	for _, e := range entries {
		if fileName().MatchString(e.Name()) {
			names = append(names, e.Name())
		}
	}
	if len(names) > maxFiles {
		return nil, fmt.Errorf("there are %d recordings, more than %d", len(names), maxFiles)
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
		return nil, errors.Join(err, fmt.Errorf("%s is no file", name))
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(data)) > limit {
		err = fmt.Errorf("%s is too large: a recording may have %d MiB, and all of them %d", name, maxFile>>20, maxAll>>20)
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
		return nil, errors.New("there is something after the recording")
	}
	return &r, r.check()
}

// check says what is missing or cannot be.
func (r *recording) check() error {
	if vendor, name, _ := strings.Cut(r.Model, ":"); vendor == "" || name == "" {
		return fmt.Errorf("the model is named %q, not vendor:name", r.Model)
	}
	if (r.Answer == nil) == (r.Failed == nil || r.Failed.Refused == nil) {
		return errors.New("it has neither an answer nor a refusal, or both")
	}
	return errors.Join(r.Request.check(), r.Answer.check(), checkEvents(r.Events))
}

// Name is that of the model that was recorded.
func (m *Model) Name() string { return m.name }

// Stream implements [llm.Model]: the events as they were recorded, and the error if
// there was one. A request that was not recorded is an [*UnknownError].
func (m *Model) Stream(ctx context.Context, r *llm.Request) iter.Seq2[llm.Event, error] {
	return func(yield func(llm.Event, error) bool) {
		asked, err := newRequest(r)
		if err != nil {
			yield(nil, err)
			return
		}
		known := m.known[asked.file()]
		if known == nil {
			yield(nil, m.unknown(asked))
			return
		}
		var told llm.Answer
		for _, e := range known.Events {
			if ctx.Err() != nil {
				yield(nil, ended(ctx, told))
				return
			}
			if !yield(e.event(), nil) {
				return
			}
			told.Message.Role = llm.Assistant
			if e.Text != nil {
				told.Message.Parts = []llm.Part{llm.Text(told.Message.Words() + *e.Text)}
			}
		}
		if ctx.Err() != nil {
			yield(nil, ended(ctx, told))
			return
		}
		if known.Failed != nil {
			yield(nil, known.Failed.err(known.Answer))
			return
		}
		yield(llm.Done{Answer: known.Answer.answer()}, nil)
	}
}

// ended is the error of a stream whose context ended on the way.
func ended(ctx context.Context, told llm.Answer) error {
	if told.Message.Role == "" {
		return context.Cause(ctx)
	}
	return &llm.CutError{Answer: told, Err: context.Cause(ctx)}
}

// Digest is what tells a request from any other one: "sha256:" and hex, over
// everything that a model is sent. A request whose texts are not UTF-8 has that of the
// request with U+FFFD in their place; it fails where the schema of a tool is no JSON.
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

// encode is a value as it stands in a file.
func encode(v any) []byte {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		panic(err) // all of it was checked when it was made
	}
	return b.Bytes()
}
