package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// ErrNotGranted means that no grant applies.
var ErrNotGranted = errors.New("not granted")

// Reader finds grants. Implementations must be safe for concurrent use and must
// not share mutable data with callers.
type Reader interface {
	// Find returns the newest unexpired grant that permits the principal to use
	// the subject in the session ("" for none). It returns [ErrNotGranted] if
	// there is none, and another error if that cannot be determined.
	Find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error)
	// List returns all grants, including expired ones, oldest first, and a
	// problem for each unreadable grant. It returns an error if no grant can be
	// read.
	List(ctx context.Context) ([]Grant, []Problem, error)
}

// NeedsReader is a [Reader] for stores that approve each skill by itself. Such
// a store needs to know the dependencies of a run.
type NeedsReader interface {
	Reader
	// FindWith is like Find for a run with these dependencies. If all of them
	// are approved, the grant names them.
	FindWith(ctx context.Context, p Principal, subject Digest, session string, needs []Need) (*Grant, error)
}

// findWith finds a grant for a run with these dependencies.
func findWith(ctx context.Context, r Reader, p Principal, subject Digest, session string, needs []Need) (*Grant, error) {
	if n, ok := r.(NeedsReader); ok {
		return n.FindWith(ctx, p, subject, session, needs)
	}
	return r.Find(ctx, p, subject, session)
}

// NotGrantedError is an [ErrNotGranted] of a [Reader] that knows why no grant
// applies and what the user can do about it.
type NotGrantedError struct{ Reason, Hint string }

func (e *NotGrantedError) Error() string { return e.Reason }

// Is reports whether target is [ErrNotGranted].
func (e *NotGrantedError) Is(target error) bool { return target == ErrNotGranted }

// Store is a [Reader] that can store and revoke grants.
type Store interface {
	Reader
	// Put stores a grant as of now and returns it with its ID. It replaces a
	// grant with the same principal, subject, scope and session. A grant for a
	// session or a single use expires after a day unless it has an expiry. Put
	// deletes grants that expired 30 days ago.
	Put(ctx context.Context, g Grant) (Grant, error)
	// Revoke deletes the grant with that ID, or else all grants for the skill
	// or tool with that name, or else all grants whose subject begins with that
	// digest. A digest needs at least 8 digits, with or without "sha256:".
	// Revoke returns the deleted grants, oldest first, or [ErrNotGranted] if
	// there were none. An unreadable grant can be revoked only by its ID. Among
	// concurrent callers that revoke the same grant, exactly one gets it.
	Revoke(ctx context.Context, what string) ([]Grant, error)
}

const (
	expiredRetention = 30 * 24 * time.Hour
	maxGrants        = 4096 // per store
	minDigestDigits  = 8    // digits that Revoke needs to match a digest
	defaultInterval  = 200 * time.Millisecond
)

var errTooMany = fmt.Errorf("too many grants (limit %d): revoke some", maxGrants)

// MemoryStore stores grants until the process ends. The zero value is an empty
// store.
type MemoryStore struct {
	mu     sync.Mutex
	grants map[string]Grant // by ID
}

var _ Store = (*MemoryStore)(nil)

// Put stores a grant.
func (m *MemoryStore) Put(_ context.Context, g Grant) (Grant, error) {
	now := time.Now()
	g, err := g.prepare(now)
	if err == nil {
		_, err = g.encode() // checks the size
	}
	if err != nil {
		return Grant{}, fmt.Errorf("store grant: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, old := range m.grants {
		if old.isForgettable(now) {
			delete(m.grants, id)
		}
	}
	if _, ok := m.grants[g.ID]; !ok && len(m.grants) >= maxGrants {
		return Grant{}, fmt.Errorf("store grant: %w", errTooMany)
	}
	if m.grants == nil {
		m.grants = map[string]Grant{}
	}
	m.grants[g.ID] = g
	return g.clone(), nil
}

// Find returns the newest grant that applies.
func (m *MemoryStore) Find(_ context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Grant
	for _, id := range candidateIDs(p, subject, session) {
		if g, ok := m.grants[id]; ok {
			found = append(found, g.clone())
		}
	}
	return newestGrant(found, p, subject, session)
}

// List returns all grants.
func (m *MemoryStore) List(context.Context) ([]Grant, []Problem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list(), nil, nil
}

func (m *MemoryStore) list() []Grant {
	var out []Grant
	for _, g := range m.grants {
		out = append(out, g.clone())
	}
	sortGrants(out)
	return out
}

// Revoke deletes grants.
func (m *MemoryStore) Revoke(_ context.Context, what string) ([]Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	gone := selectGrants(m.list(), what)
	for _, g := range gone {
		delete(m.grants, g.ID)
	}
	if len(gone) == 0 {
		return nil, fmt.Errorf("revoke %.200q: %w", what, ErrNotGranted)
	}
	return gone, nil
}

func (g *Grant) isForgettable(now time.Time) bool {
	return !g.Expires.IsZero() && now.Sub(g.Expires) >= expiredRetention
}

// newestGrant returns the newest grant that permits p to use the subject in the
// session now.
func newestGrant(grants []Grant, p Principal, subject Digest, session string) (*Grant, error) {
	now := time.Now()
	sortGrants(grants)
	for _, g := range slices.Backward(grants) {
		if g.Principal == p && g.Subject == subject && (g.Session == "" || g.Session == session) && !g.Expired(now) {
			return &g, nil
		}
	}
	return nil, fmt.Errorf("%s for %s: %w", subject.Short(), p, ErrNotGranted)
}

func sortGrants(grants []Grant) {
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
}

// selectGrants returns the grants that match by ID, else by name, else by the
// beginning of the digest.
func selectGrants(grants []Grant, what string) []Grant {
	hex := strings.TrimPrefix(what, "sha256:")
	for _, is := range []func(Grant) bool{
		func(g Grant) bool { return g.ID == what },
		func(g Grant) bool { return g.Name == what },
		func(g Grant) bool {
			return len(hex) >= minDigestDigits && strings.HasPrefix(string(g.Subject), "sha256:"+hex)
		},
	} {
		if found := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool { return !is(g) }); len(found) > 0 {
			return found
		}
	}
	return nil
}
