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

// ErrNotGranted says that there is no grant of what was asked for.
var ErrNotGranted = errors.New("not granted")

// Reader looks grants up. Implementations are safe for concurrent use, and
// share nothing with their callers that can be changed.
type Reader interface {
	// Find returns the grant given last of those that permit the principal
	// to use the subject in the session, "" for none, and that have not
	// expired. It fails with [ErrNotGranted] where there is none, and with
	// another error where that cannot be known.
	Find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error)
	// List returns all grants, those that have expired too, in the order in
	// which they were given, and what is wrong with others. It fails where
	// none can be read.
	List(ctx context.Context) ([]Grant, []Problem, error)
}

// NeedsReader is a [Reader] of approvals that are of each skill by itself, so that what
// permits a run is known with what runs along.
type NeedsReader interface {
	Reader
	// FindWith is Find for a run with these needs: the grant names them where all of
	// them are approved.
	FindWith(ctx context.Context, p Principal, subject Digest, session string, needs []Need) (*Grant, error)
}

// findWith looks up a grant for a run.
func findWith(ctx context.Context, r Reader, p Principal, subject Digest, session string, needs []Need) (*Grant, error) {
	if n, ok := r.(NeedsReader); ok {
		return n.FindWith(ctx, p, subject, session, needs)
	}
	return r.Find(ctx, p, subject, session)
}

// NotGrantedError is an [ErrNotGranted] of a [Reader] that knows better than [Decide]
// why, and what a person can do about it.
type NotGrantedError struct{ Reason, Next string }

func (e *NotGrantedError) Error() string { return e.Reason }

// Is makes the error match [ErrNotGranted].
func (e *NotGrantedError) Is(target error) bool { return target == ErrNotGranted }

// Store keeps grants. What holds for a [Reader] holds for it.
type Store interface {
	Reader
	// Put keeps a grant given now, in place of one with the same principal,
	// subject, scope and session, and returns it as it is kept, with its ID.
	// A grant for a session or a run expires after a day unless it says when.
	// Put forgets grants that expired 30 days ago.
	Put(ctx context.Context, g Grant) (Grant, error)
	// Revoke withdraws the grant with that ID, or else all of the skill or tool
	// with that name, or else all whose subject begins with that digest, of which
	// at least 8 digits are given, with or without "sha256:". It returns what
	// it withdrew, in the order in which it was given, and fails with
	// [ErrNotGranted] where that is nothing. Of a grant that cannot be read
	// only the ID is known, and only by that it can be withdrawn. Of callers
	// that revoke the same grant at the same time, one gets it.
	Revoke(ctx context.Context, what string) ([]Grant, error)
}

const (
	forgetAfter     = 30 * 24 * time.Hour
	maxGrants       = 4096 // in one store
	leastHex        = 8    // digits of a digest that can be revoked by
	defaultInterval = 200 * time.Millisecond
)

var errTooMany = fmt.Errorf("there are %d grants already: revoke some", maxGrants)

// Memory keeps grants until the process ends. The zero value is empty.
type Memory struct {
	mu     sync.Mutex
	grants map[string]Grant // by ID
}

var _ Store = (*Memory)(nil)

// Put keeps a grant.
func (m *Memory) Put(_ context.Context, g Grant) (Grant, error) {
	now := time.Now()
	g, err := g.fresh(now)
	if err == nil {
		_, err = g.encode() // for its size
	}
	if err != nil {
		return Grant{}, fmt.Errorf("keep a grant: %w", err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for id, old := range m.grants {
		if old.forgettable(now) {
			delete(m.grants, id)
		}
	}
	if _, ok := m.grants[g.ID]; !ok && len(m.grants) >= maxGrants {
		return Grant{}, fmt.Errorf("keep a grant: %w", errTooMany)
	}
	if m.grants == nil {
		m.grants = map[string]Grant{}
	}
	m.grants[g.ID] = g
	return g.clone(), nil
}

// Find returns the newest grant that applies.
func (m *Memory) Find(_ context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var found []Grant
	for _, id := range candidates(p, subject, session) {
		if g, ok := m.grants[id]; ok {
			found = append(found, g.clone())
		}
	}
	return newest(found, p, subject, session)
}

// List returns all grants.
func (m *Memory) List(context.Context) ([]Grant, []Problem, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.list(), nil, nil
}

func (m *Memory) list() []Grant {
	var out []Grant
	for _, g := range m.grants {
		out = append(out, g.clone())
	}
	sortGrants(out)
	return out
}

// Revoke withdraws grants.
func (m *Memory) Revoke(_ context.Context, what string) ([]Grant, error) {
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

func (g *Grant) forgettable(now time.Time) bool {
	return !g.Expires.IsZero() && now.Sub(g.Expires) >= forgetAfter
}

// newest returns the last grant of those which permit p to use the subject in
// the session now.
func newest(grants []Grant, p Principal, subject Digest, session string) (*Grant, error) {
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

// selectGrants returns those that are meant by an ID, else by a name, else by
// the beginning of a digest.
func selectGrants(grants []Grant, what string) []Grant {
	hex := strings.TrimPrefix(what, "sha256:")
	for _, is := range []func(Grant) bool{
		func(g Grant) bool { return g.ID == what },
		func(g Grant) bool { return g.Name == what },
		func(g Grant) bool {
			return len(hex) >= leastHex && strings.HasPrefix(string(g.Subject), "sha256:"+hex)
		},
	} {
		if found := slices.DeleteFunc(slices.Clone(grants), func(g Grant) bool { return !is(g) }); len(found) > 0 {
			return found
		}
	}
	return nil
}
