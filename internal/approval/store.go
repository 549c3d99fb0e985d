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
// concurrent use, including use by several processes if they share the store.
// They must not share mutable data with callers.
type Store interface {
	// Put stores a pending request. It returns an error if the ID already
	// exists, or if the session already has [MaxOpen] pending requests.
	Put(ctx context.Context, a Request) error
	// Get returns a request, and its answer if it is resolved. If there is no
	// such request, the error is [ErrNotFound].
	Get(ctx context.Context, id string) (Request, *Answer, error)
	// Resolve stores the answer to a pending request. If the request is already
	// resolved, it returns the existing answer. Of several concurrent answers,
	// exactly one is stored.
	Resolve(ctx context.Context, id string, answer Answer) (existing *Answer, err error)
	// Pending returns the pending requests of a session, oldest first.
	Pending(ctx context.Context, session string) ([]Request, error)
	// Delete removes a request and its answer, if they exist.
	Delete(ctx context.Context, id string) error
}

// storedRequest is the JSON format of a stored request and its answer.
type storedRequest struct {
	Request
	Answer *Answer `json:"answer,omitempty"`
}

// resolvedRetention is the time that a resolved request stays in a store.
const resolvedRetention = 24 * time.Hour

// MemoryStore stores requests in memory. The zero value is an empty store.
type MemoryStore struct {
	mu  sync.Mutex
	all []storedRequest
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
	m.all = slices.DeleteFunc(m.all, func(r storedRequest) bool { return r.ID == id })
	return nil
}

// FileStore stores requests in a directory, with a file of mode 0600 per
// session. Several processes can use the directory at the same time.
type FileStore struct{ dir string }

var _ Store = (*FileStore)(nil)

// NewFileStore returns a store in dir. The directory is created when the first
// request is stored.
func NewFileStore(dir string) *FileStore { return &FileStore{dir} }

// maxFile is the maximum size of a session's file in bytes.
const maxFile = 64 << 20

// sessionName matches valid session names, which are also used as file names.
var sessionName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_-]{0,127}$`)

// sessionFile returns the file that stores a session's requests.
func (f *FileStore) sessionFile(session string) (*privatefile.File, error) {
	if !sessionName.MatchString(session) {
		return nil, fmt.Errorf("invalid session name %q", session)
	}
	return privatefile.New(filepath.Join(f.dir, session+".json"), maxFile), nil
}

func (f *FileStore) read(session string) ([]storedRequest, error) {
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

func decodeRecords(data []byte) ([]storedRequest, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var all []storedRequest
	if err := json.Unmarshal(data, &all); err != nil {
		return nil, fmt.Errorf("read approval requests: %w", err)
	}
	return all, nil
}

// update replaces a session's requests with the result of edit.
func (f *FileStore) update(ctx context.Context, session string, edit func([]storedRequest) ([]storedRequest, error)) error {
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

// findSession returns a request's session and all requests of that session.
func (f *FileStore) findSession(id string) (string, []storedRequest, error) {
	i := strings.IndexByte(id, '.') // session names contain no dot
	if i < 0 || !sessionName.MatchString(id[:i]) {
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
	return f.update(ctx, a.Session, func(all []storedRequest) ([]storedRequest, error) { return addRequest(all, a) })
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
func (f *FileStore) Resolve(ctx context.Context, id string, answer Answer) (existing *Answer, err error) {
	session, _, err := f.findSession(id)
	if err != nil {
		return nil, err
	}
	err = f.update(ctx, session, func(all []storedRequest) ([]storedRequest, error) {
		existing, err = resolveRecord(all, id, answer)
		return all, err
	})
	return existing, err
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
	return f.update(ctx, session, func(all []storedRequest) ([]storedRequest, error) {
		return slices.DeleteFunc(all, func(r storedRequest) bool { return r.ID == id }), nil
	})
}

// addRequest adds a request and removes requests whose retention has expired.
func addRequest(all []storedRequest, a Request) ([]storedRequest, error) {
	if indexOf(all, a.ID) >= 0 {
		return nil, fmt.Errorf("approval request %s already exists", a.ID)
	}
	if len(pendingRequests(all, a.Session)) >= MaxOpen {
		return nil, fmt.Errorf("too many pending approval requests (limit %d per session); answer some first", MaxOpen)
	}
	kept := slices.DeleteFunc(slices.Clone(all), func(r storedRequest) bool {
		return r.Answer != nil && time.Since(r.Answer.ResolvedAt) > resolvedRetention
	})
	return append(kept, storedRequest{Request: a.clone()}), nil
}

func getRequest(all []storedRequest, id string) (Request, *Answer, error) {
	i := indexOf(all, id)
	if i < 0 {
		return Request{}, nil, ErrNotFound
	}
	return all[i].Request.clone(), all[i].Answer.clone(), nil
}

func resolveRecord(all []storedRequest, id string, answer Answer) (*Answer, error) {
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

func pendingRequests(all []storedRequest, session string) []Request {
	var out []Request
	for _, r := range all {
		if r.Answer == nil && r.Session == session {
			out = append(out, r.Request.clone())
		}
	}
	return out
}

func indexOf(all []storedRequest, id string) int {
	return slices.IndexFunc(all, func(r storedRequest) bool { return r.ID == id })
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
