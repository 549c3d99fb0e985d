package ask

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/pattern"
	"github.com/loadout-dev/loadout/policy"
)

// Store keeps asks and their answers. Implementations are safe for concurrent use,
// also between processes where they are kept for several, and share nothing with
// their callers that can be changed.
type Store interface {
	// Put keeps an ask that waits. An ID that is there already is an error, as is
	// one more of a session than [MaxOpen].
	Put(ctx context.Context, a Ask) error
	// Get returns an ask, with its answer where it is settled; [ErrUnknown] where
	// there is none.
	Get(ctx context.Context, id string) (Ask, *Answer, error)
	// Settle keeps the answer where the ask waits, and else returns the one that
	// stands. Of two at the same time one is kept.
	Settle(ctx context.Context, id string, answer Answer) (stands *Answer, err error)
	// Open are the asks of a session that wait, the oldest first.
	Open(ctx context.Context, session string) ([]Ask, error)
	// Delete forgets an ask and its answer, where it is there.
	Delete(ctx context.Context, id string) error
}

// record is an ask as it is kept.
type record struct {
	Ask
	Answer *Answer `json:"answer,omitempty"`
}

// keepSettled is for how long an answer can be asked for.
const keepSettled = 24 * time.Hour

// Memory is a store that ends with the process. The zero value is empty.
type Memory struct {
	mu  sync.Mutex
	all []record
}

var _ Store = (*Memory)(nil)

// Put implements [Store].
func (m *Memory) Put(_ context.Context, a Ask) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, err := put(m.all, a)
	if err == nil {
		m.all = all
	}
	return err
}

// Get implements [Store].
func (m *Memory) Get(_ context.Context, id string) (Ask, *Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return get(m.all, id)
}

// Settle implements [Store].
func (m *Memory) Settle(_ context.Context, id string, answer Answer) (*Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return settle(m.all, id, answer)
}

// Open implements [Store].
func (m *Memory) Open(_ context.Context, session string) ([]Ask, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return open(m.all, session), nil
}

// Delete implements [Store].
func (m *Memory) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(r record) bool { return r.ID == id })
	return nil
}

// Files is a store in a directory with a file for each session, of mode 0600. Any
// number of processes use it at once.
type Files struct{ dir string }

var _ Store = (*Files)(nil)

// NewFiles returns the store in a directory, which is made when it is needed.
func NewFiles(dir string) *Files { return &Files{dir} }

// maxFile bounds the asks of one session in bytes.
const maxFile = 64 << 20

// sessionName is what names a session, and so a file.
var sessionName = pattern.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// file is that of the session, which the ID of an ask begins with.
func (f *Files) file(session string) (*policy.OwnFile, error) {
	if !sessionName().MatchString(session) {
		return nil, fmt.Errorf("%q is no name of a session", session)
	}
	return policy.NewOwnFile(filepath.Join(f.dir, session+".json"), maxFile), nil
}

func (f *Files) read(session string) ([]record, error) {
	file, err := f.file(session)
	if err != nil {
		return nil, err
	}
	data, err := file.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return decode(data)
}

func decode(data []byte) ([]record, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var all []record
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("the questions of the session cannot be read: %w", err)
	}
	return all, nil
}

// change edits the asks of a session.
func (f *Files) change(ctx context.Context, session string, edit func([]record) ([]record, error)) error {
	file, err := f.file(session)
	if err != nil {
		return err
	}
	return file.Change(ctx, func(old []byte) ([]byte, error) {
		all, err := decode(old)
		if err != nil {
			return nil, err
		}
		if all, err = edit(all); err != nil {
			return nil, err
		}
		return json.Marshal(all)
	})
}

// find returns the session of an ask, and its asks.
func (f *Files) find(id string) (string, []record, error) {
	i := strings.IndexByte(id, '.') // a session's name has none
	if i < 0 || !sessionName().MatchString(id[:i]) {
		return "", nil, ErrUnknown
	}
	all, err := f.read(id[:i])
	if err == nil && index(all, id) < 0 {
		err = ErrUnknown
	}
	return id[:i], all, err
}

// Put implements [Store].
func (f *Files) Put(ctx context.Context, a Ask) error {
	return f.change(ctx, a.Session, func(all []record) ([]record, error) { return put(all, a) })
}

// Get implements [Store].
func (f *Files) Get(_ context.Context, id string) (Ask, *Answer, error) {
	_, all, err := f.find(id)
	if err != nil {
		return Ask{}, nil, err
	}
	return get(all, id)
}

// Settle implements [Store].
func (f *Files) Settle(ctx context.Context, id string, answer Answer) (stands *Answer, err error) {
	session, _, err := f.find(id)
	if err != nil {
		return nil, err
	}
	err = f.change(ctx, session, func(all []record) ([]record, error) {
		stands, err = settle(all, id, answer)
		return all, err
	})
	return stands, err
}

// Open implements [Store].
func (f *Files) Open(_ context.Context, session string) ([]Ask, error) {
	all, err := f.read(session)
	return open(all, session), err
}

// Delete implements [Store].
func (f *Files) Delete(ctx context.Context, id string) error {
	session, _, err := f.find(id)
	if errors.Is(err, ErrUnknown) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.change(ctx, session, func(all []record) ([]record, error) {
		return slices.DeleteFunc(all, func(r record) bool { return r.ID == id }), nil
	})
}

// put adds an ask, and forgets those that were settled long ago.
func put(all []record, a Ask) ([]record, error) {
	if index(all, a.ID) >= 0 {
		return nil, fmt.Errorf("question %s was asked already", a.ID)
	}
	if len(open(all, a.Session)) >= MaxOpen {
		return nil, fmt.Errorf("%d questions of the session wait for an answer; answer some of them first", MaxOpen)
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(r record) bool { return r.Answer != nil && time.Since(r.Answer.At) > keepSettled })
	return append(kept, record{Ask: a.clone()}), nil
}

func get(all []record, id string) (Ask, *Answer, error) {
	i := index(all, id)
	if i < 0 {
		return Ask{}, nil, ErrUnknown
	}
	return all[i].Ask.clone(), all[i].Answer.clone(), nil
}

func settle(all []record, id string, answer Answer) (*Answer, error) {
	i := index(all, id)
	if i < 0 {
		return nil, ErrUnknown
	}
	if all[i].Answer != nil {
		return all[i].Answer.clone(), nil
	}
	all[i].Answer = answer.clone()
	return nil, nil
}

func open(all []record, session string) []Ask {
	var out []Ask
	for _, r := range all {
		if r.Answer == nil && r.Session == session {
			out = append(out, r.Ask.clone())
		}
	}
	return out
}

func index(all []record, id string) int {
	return slices.IndexFunc(all, func(r record) bool { return r.ID == id })
}

func (a Ask) clone() Ask {
	a.Payload, a.Schema = slices.Clone(a.Payload), slices.Clone(a.Schema)
	return a
}

func (a *Answer) clone() *Answer {
	if a == nil {
		return nil
	}
	c := *a
	c.Content = slices.Clone(a.Content)
	return &c
}
