package approval

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

	"github.com/loadout-dev/loadout/internal/lazyregexp"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

// Store stores requests and their answers. Implementations must be safe for
// concurrent use, also between processes if several share the store, and must
// not share mutable data with callers.
type Store interface {
	// Put stores a pending request. It returns an error if the ID exists, or if
	// the session already has [MaxOpen] pending requests.
	Put(ctx context.Context, a Request) error
	// Get returns a request, with its answer if it is resolved. It returns
	// [ErrNotFound] if there is none.
	Get(ctx context.Context, id string) (Request, *Answer, error)
	// Resolve stores the answer of a pending request. If the request is already
	// resolved, Resolve returns the answer that stands. Of concurrent answers
	// exactly one is stored.
	Resolve(ctx context.Context, id string, answer Answer) (stands *Answer, err error)
	// Pending returns the pending requests of a session, oldest first.
	Pending(ctx context.Context, session string) ([]Request, error)
	// Delete removes a request and its answer, if it exists.
	Delete(ctx context.Context, id string) error
}

// record is a stored request with its answer.
type record struct {
	Request
	Answer *Answer `json:"answer,omitempty"`
}

// resolvedRetention is how long a resolved request stays in a store.
const resolvedRetention = 24 * time.Hour

// MemoryStore stores requests until the process ends. The zero value is an
// empty store.
type MemoryStore struct {
	mu  sync.Mutex
	all []record
}

var _ Store = (*MemoryStore)(nil)

// Put implements [Store].
func (m *MemoryStore) Put(_ context.Context, a Request) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	all, err := addRequest(m.all, a)
	if err == nil {
		m.all = all
	}
	return err
}

// Get implements [Store].
func (m *MemoryStore) Get(_ context.Context, id string) (Request, *Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return getRequest(m.all, id)
}

// Resolve implements [Store].
func (m *MemoryStore) Resolve(_ context.Context, id string, answer Answer) (*Answer, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return resolveRecord(m.all, id, answer)
}

// Pending implements [Store].
func (m *MemoryStore) Pending(_ context.Context, session string) ([]Request, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return pendingRequests(m.all, session), nil
}

// Delete implements [Store].
func (m *MemoryStore) Delete(_ context.Context, id string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.all = slices.DeleteFunc(m.all, func(r record) bool { return r.ID == id })
	return nil
}

// FileStore stores the requests of each session in a file of mode 0600 in a
// directory. Any number of processes can use it at the same time.
type FileStore struct{ dir string }

var _ Store = (*FileStore)(nil)

// NewFileStore returns the store in a directory, which is created if necessary.
func NewFileStore(dir string) *FileStore { return &FileStore{dir} }

// maxFile limits the size of the file of one session, in bytes.
const maxFile = 64 << 20

// sessionName matches the names of sessions, which are also file names.
var sessionName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// sessionFile returns the file of a session.
func (f *FileStore) sessionFile(session string) (*privatefile.File, error) {
	if !sessionName().MatchString(session) {
		return nil, fmt.Errorf("invalid session name %q", session)
	}
	return privatefile.New(filepath.Join(f.dir, session+".json"), maxFile), nil
}

func (f *FileStore) read(session string) ([]record, error) {
	file, err := f.sessionFile(session)
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
	return decodeRecords(data)
}

func decodeRecords(data []byte) ([]record, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var all []record
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read approval requests: %w", err)
	}
	return all, nil
}

// update edits the requests of a session.
func (f *FileStore) update(ctx context.Context, session string, edit func([]record) ([]record, error)) error {
	file, err := f.sessionFile(session)
	if err != nil {
		return err
	}
	return file.Change(ctx, func(old []byte) ([]byte, error) {
		all, err := decodeRecords(old)
		if err != nil {
			return nil, err
		}
		if all, err = edit(all); err != nil {
			return nil, err
		}
		return json.Marshal(all)
	})
}

// findSession returns the session of a request and all its requests.
func (f *FileStore) findSession(id string) (string, []record, error) {
	i := strings.IndexByte(id, '.') // session names have no dot
	if i < 0 || !sessionName().MatchString(id[:i]) {
		return "", nil, ErrNotFound
	}
	all, err := f.read(id[:i])
	if err == nil && indexOf(all, id) < 0 {
		err = ErrNotFound
	}
	return id[:i], all, err
}

// Put implements [Store].
func (f *FileStore) Put(ctx context.Context, a Request) error {
	return f.update(ctx, a.Session, func(all []record) ([]record, error) { return addRequest(all, a) })
}

// Get implements [Store].
func (f *FileStore) Get(_ context.Context, id string) (Request, *Answer, error) {
	_, all, err := f.findSession(id)
	if err != nil {
		return Request{}, nil, err
	}
	return getRequest(all, id)
}

// Resolve implements [Store].
func (f *FileStore) Resolve(ctx context.Context, id string, answer Answer) (stands *Answer, err error) {
	session, _, err := f.findSession(id)
	if err != nil {
		return nil, err
	}
	err = f.update(ctx, session, func(all []record) ([]record, error) {
		stands, err = resolveRecord(all, id, answer)
		return all, err
	})
	return stands, err
}

// Pending implements [Store].
func (f *FileStore) Pending(_ context.Context, session string) ([]Request, error) {
	all, err := f.read(session)
	return pendingRequests(all, session), err
}

// Delete implements [Store].
func (f *FileStore) Delete(ctx context.Context, id string) error {
	session, _, err := f.findSession(id)
	if errors.Is(err, ErrNotFound) {
		return nil
	}
	if err != nil {
		return err
	}
	return f.update(ctx, session, func(all []record) ([]record, error) {
		return slices.DeleteFunc(all, func(r record) bool { return r.ID == id }), nil
	})
}

// addRequest adds a request and removes those that were resolved long ago.
func addRequest(all []record, a Request) ([]record, error) {
	if indexOf(all, a.ID) >= 0 {
		return nil, fmt.Errorf("approval request %s already exists", a.ID)
	}
	if len(pendingRequests(all, a.Session)) >= MaxOpen {
		return nil, fmt.Errorf("too many pending approval requests (limit %d per session); answer some first", MaxOpen)
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(r record) bool { return r.Answer != nil && time.Since(r.Answer.ResolvedAt) > resolvedRetention })
	return append(kept, record{Request: a.clone()}), nil
}

func getRequest(all []record, id string) (Request, *Answer, error) {
	i := indexOf(all, id)
	if i < 0 {
		return Request{}, nil, ErrNotFound
	}
	return all[i].Request.clone(), all[i].Answer.clone(), nil
}

func resolveRecord(all []record, id string, answer Answer) (*Answer, error) {
	i := indexOf(all, id)
	if i < 0 {
		return nil, ErrNotFound
	}
	if all[i].Answer != nil {
		return all[i].Answer.clone(), nil
	}
	all[i].Answer = answer.clone()
	return nil, nil
}

func pendingRequests(all []record, session string) []Request {
	var out []Request
	for _, r := range all {
		if r.Answer == nil && r.Session == session {
			out = append(out, r.Request.clone())
		}
	}
	return out
}

func indexOf(all []record, id string) int {
	return slices.IndexFunc(all, func(r record) bool { return r.ID == id })
}

func (a Request) clone() Request {
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
