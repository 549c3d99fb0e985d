package policy

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

// ErrNotGranted indicates that no grant applies. Methods of [Store] may wrap
// it.
var ErrNotGranted = errors.New("permission not granted")

// ErrTooManyGrants indicates that a store holds 4096 other grants. [Store.Put]
// may wrap it.
var ErrTooManyGrants = fmt.Errorf("too many grants (limit %d): revoke some", maxGrants)

const (
	expiredRetention = 30 * 24 * time.Hour
	maxGrants        = 4096 // maximum number of grants in a store
	minDigestDigits  = 8    // minimum number of digits for Revoke to match a digest
)

// Store holds grants. [NewStore] returns a store based on any table.
// Implementations must be safe for concurrent use and must not share mutable
// data with callers. Package loadouttest contains tests for implementations.
type Store interface {
	// Find returns the newest unexpired grant that permits the principal to use
	// the subject in the session ("" for none). The error matches
	// [ErrNotGranted] if there is none, but not if the grants cannot be read.
	Find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error)
	// List returns all grants, including expired ones, oldest first, and a
	// problem for each unreadable grant. It returns an error if the store
	// itself cannot be read.
	List(ctx context.Context) ([]Grant, []Problem, error)
	// Put stores a grant with the current time as its creation time, and
	// returns it with its ID. It replaces a grant with the same principal,
	// subject, scope and session. A session or one-time grant without an expiry
	// expires after a day. Put deletes grants that expired 30 days ago. If the
	// grant is invalid, Put returns an error that lists all problems. If the
	// store holds 4096 other grants, the error matches [ErrTooManyGrants].
	Put(ctx context.Context, g Grant) (Grant, error)
	// Revoke deletes the grant with the given ID. If there is none, it deletes
	// all grants for the skill or tool with that name, or else all grants
	// whose subject starts with that digest. A digest needs at least 8 digits,
	// with or without "sha256:". Revoke returns the deleted grants, oldest
	// first. The error matches [ErrNotGranted] if there were none. An
	// unreadable grant can be revoked only by its ID. If concurrent callers
	// revoke the same grant, exactly one of them gets it. On another error,
	// Revoke may have deleted some grants, and returns those.
	Revoke(ctx context.Context, what string) ([]Grant, error)
}

// Rows is a table of encoded grants, for example in an SQL database. Methods
// must be safe for concurrent use, including by other processes that use the
// table. They must not retain or modify the data of rows.
type Rows interface {
	// List returns the rows with the given IDs, or all rows if ids is nil, in
	// any order. IDs without a row are skipped; they are not an error.
	List(ctx context.Context, ids []string) ([]Row, error)
	// Put stores a row and replaces any row with the same ID.
	Put(ctx context.Context, r Row) error
	// Delete deletes the row if its data is unchanged, and reports whether it
	// did. If it is called concurrently, exactly one caller gets true. A
	// missing or changed row is not an error.
	Delete(ctx context.Context, r Row) (bool, error)
}

// Row is an encoded grant. Implementations of [Rows] store ID and Data.
type Row struct {
	ID   string // 20 hexadecimal digits
	Data []byte // the [Grant] as JSON text, at most 64 KiB

	grant *Grant // decoded data, if known
	path  string // location of the data; "" means the ID
	err   error  // why the data is unreadable
}

func (r *Row) decode() (Grant, error) {
	switch {
	case r.err != nil:
		return Grant{}, r.err
	case r.grant != nil:
		return r.grant.clone(), nil
	}
	g, err := ReadGrant(r.Data)
	if err == nil && g.ID != r.ID {
		err = fmt.Errorf("grant ID mismatch: want %s, got %s", r.ID, g.ID)
	}
	if err != nil {
		return Grant{}, &privatefile.DamagedError{Path: r.location(), Err: err}
	}
	return g, nil
}

func (r *Row) location() string { return cmp.Or(r.path, "grant "+r.ID) }

// NewStore returns a grant store based on rows, which must not be nil. Each
// concurrent call of Put may exceed the maximum number of grants by one. The
// caller must close the resources used by rows.
func NewStore(rows Rows) Store { return &tableStore{rows} }

type tableStore struct{ rows Rows }

func (s *tableStore) Put(ctx context.Context, g Grant) (Grant, error) {
	g, err := s.put(ctx, g, time.Now())
	if err != nil {
		return Grant{}, fmt.Errorf("store grant: %w", err)
	}
	return g, nil
}

func (s *tableStore) put(ctx context.Context, g Grant, now time.Time) (Grant, error) {
	g, err := g.prepare(now)
	if err != nil {
		return g, err
	}
	data, err := g.encode()
	if err != nil {
		return g, err
	}
	rows, err := s.rows.List(ctx, nil)
	if err != nil {
		return g, err
	}
	others := 0
	for _, r := range rows {
		if r.ID == g.ID {
			continue
		}
		if old, err := r.decode(); err != nil || !old.isPrunable(now) {
			others++
		} else if _, err := s.rows.Delete(ctx, r); err != nil {
			return g, err
		}
	}
	if others >= maxGrants {
		return g, ErrTooManyGrants
	}
	stored := g.clone()
	return g, s.rows.Put(ctx, Row{ID: g.ID, Data: data, grant: &stored})
}

// Find implements [Store]. It reports an unreadable row only if no other grant
// applies.
func (s *tableStore) Find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	rows, err := s.rows.List(ctx, candidateIDs(p, subject, session))
	if err != nil {
		return nil, fmt.Errorf("find grant: %w", err)
	}
	grants, unreadable := decodeRows(rows)
	g, err := newestGrant(grants, p, subject, session)
	if err != nil && len(unreadable) > 0 {
		errs := make([]error, len(unreadable))
		for i, r := range unreadable {
			errs[i] = r.err
		}
		return nil, fmt.Errorf("find grant: %w", errors.Join(errs...))
	}
	return g, err
}

func (s *tableStore) List(ctx context.Context) ([]Grant, []Problem, error) {
	rows, err := s.rows.List(ctx, nil)
	if err != nil {
		return nil, nil, fmt.Errorf("list grants: %w", err)
	}
	grants, unreadable := decodeRows(rows)
	var problems []Problem
	for _, r := range unreadable {
		problems = append(problems, Problem{Where: r.location(), Message: privatefile.Reason(r.err)})
	}
	return grants, problems, nil
}

func (s *tableStore) Revoke(ctx context.Context, what string) ([]Grant, error) {
	rows, err := s.rows.List(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("revoke %.200q: %w", what, err)
	}
	byID := map[string]Row{}
	for _, r := range rows {
		byID[r.ID] = r
	}
	grants, unreadable := decodeRows(rows)
	if slices.ContainsFunc(unreadable, func(r Row) bool { return r.ID == what }) {
		grants = []Grant{{ID: what}}
	}
	var revoked []Grant
	for _, g := range selectGrants(grants, what) {
		deleted, e := s.rows.Delete(ctx, byID[g.ID])
		if deleted {
			revoked = append(revoked, g)
		}
		err = errors.Join(err, e)
	}
	switch {
	case err != nil:
		return revoked, fmt.Errorf("revoke %.200q: %w", what, err)
	case len(revoked) == 0:
		return nil, fmt.Errorf("revoke %.200q: %w", what, ErrNotGranted)
	}
	return revoked, nil
}

// decodeRows returns the grants in rows, oldest first. It also returns the
// unreadable rows, with the reason in err.
func decodeRows(rows []Row) (grants []Grant, unreadable []Row) {
	for _, r := range rows {
		g, err := r.decode()
		if err != nil {
			r.err = err
			unreadable = append(unreadable, r)
			continue
		}
		grants = append(grants, g)
	}
	slices.SortFunc(grants, func(a, b Grant) int {
		return cmp.Or(a.Created.Compare(b.Created), strings.Compare(a.ID, b.ID))
	})
	return grants, unreadable
}

func (g *Grant) isPrunable(now time.Time) bool {
	return !g.Expires.IsZero() && now.Sub(g.Expires) >= expiredRetention
}

// newestGrant returns the newest grant that currently permits p to use the
// subject in the session. grants must be sorted, oldest first.
func newestGrant(grants []Grant, p Principal, subject Digest, session string) (*Grant, error) {
	now := time.Now()
	for _, g := range slices.Backward(grants) {
		if g.Principal == p && g.Subject == subject && (g.Session == "" || g.Session == session) && !g.Expired(now) {
			return &g, nil
		}
	}
	return nil, fmt.Errorf("%s for %s: %w", subject.Short(), p, ErrNotGranted)
}

// selectGrants returns the grants that match by ID, or else by name, or else by
// the start of the digest.
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
