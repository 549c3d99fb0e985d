// Package superseded ends the approvals of older versions of skills. A [Store]
// is a grant store in which the approval of a version supersedes the earlier
// ones of the same skill, in the scope where the skill was approved: the user's
// directories, or those of one project.
//
// A superseded version runs only where the user chose it: in the scopes in which
// it was approved and no newer version was, and where the user approved or
// reinstated it later. Otherwise, whoever restores an old version, or a lockfile
// that names one, could run it with the old approval.
//
// Start reading at [New].
package superseded

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/loadout-dev/loadout/internal/lease"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/policy"
)

// Options configures a [Store]. All fields are required.
type Options struct {
	// Path is the file with the superseded approvals, which need not exist.
	Path string
	// Scope returns the scope to which skills of an origin belong, or "" if
	// their approvals supersede nothing.
	Scope func(origin string) string
	// Active lists the scopes that apply to the skills of this process.
	Active []string
}

// Store is a grant store in which approvals of new versions supersede those of
// older ones. It is safe for concurrent use, including by several processes.
type Store struct {
	grants  policy.Store
	options Options
}

var (
	_ policy.Store      = (*Store)(nil)
	_ lease.NeedsFinder = (*Store)(nil)
)

// New returns a store that stores approvals in grants. It moves superseded
// approvals to another file, so that earlier versions of this program do not
// apply them.
func New(grants policy.Store, o Options) *Store { return &Store{grants, o} }

// Approval is a superseded approval of a version.
type Approval struct {
	Grant policy.Grant
	// Scopes lists the scopes in which a newer version was approved. By is the
	// newest of these versions.
	Scopes []string
	By     policy.Digest
	At     time.Time // when it was superseded last
}

// Put implements [policy.Store]. If g approves code, earlier approvals of other
// versions of the same skill are superseded. If that fails, g is revoked.
func (s *Store) Put(ctx context.Context, g policy.Grant) (policy.Grant, error) {
	scope := s.options.Scope(g.Origin)
	if scope == "" || !g.Permissions.Run {
		return s.grants.Put(ctx, g)
	}
	if _, err := s.readRecords(); err != nil {
		return policy.Grant{}, err
	}
	g, err := s.grants.Put(ctx, g)
	if err != nil {
		return g, err
	}
	if err := s.supersedeOlder(ctx, g, scope); err != nil {
		_, undo := s.grants.Revoke(context.WithoutCancel(ctx), g.ID)
		return policy.Grant{}, errors.Join(fmt.Errorf("supersede earlier approvals of %s: %w", printable.Text(g.Name, 200), err), undo)
	}
	return g, nil
}

// supersedeOlder records g as the approval of the newest version in a scope,
// and moves the approvals of other versions out of the grants.
func (s *Store) supersedeOlder(ctx context.Context, g policy.Grant, scope string) error {
	older, err := s.olderGrants(ctx, g)
	if err != nil {
		return err
	}
	err = s.changeRecords(ctx, func(all records) records {
		return all.approve(g, scope).supersede(older, g, scope)
	})
	for _, old := range older {
		if err == nil {
			_, err = s.grants.Revoke(ctx, old.ID)
		}
		if errors.Is(err, policy.ErrNotGranted) { // by another process
			err = nil
		}
	}
	return err
}

// Reinstate approves a superseded version in a scope again, with the same grant
// as before. It reports whether there was such a grant. The user must have
// chosen the version there, for example by installing it from a tag.
func (s *Store) Reinstate(ctx context.Context, version policy.Digest, scope string) (bool, error) {
	all, err := s.readRecords()
	if err != nil {
		return false, err
	}
	for _, r := range all {
		if r.Grant.Subject != version || len(r.Scopes) == 0 || slices.Contains(r.Again, scope) || r.Grant.Expired(time.Now()) || s.options.Scope(r.Grant.Origin) != scope {
			continue
		}
		if _, err := s.Put(ctx, r.Grant); err != nil {
			return false, fmt.Errorf("reinstate %s: %w", version.Short(), err)
		}
		return true, nil
	}
	return false, nil
}

// olderGrants returns the stored approvals of other versions of g's skill.
func (s *Store) olderGrants(ctx context.Context, g policy.Grant) ([]policy.Grant, error) {
	all, _, err := s.grants.List(ctx)
	return slices.DeleteFunc(all, func(old policy.Grant) bool { return !isOtherVersion(old, g) }), err
}

// isOtherVersion reports whether old approves another version of g's skill.
func isOtherVersion(old, g policy.Grant) bool {
	return old.Name == g.Name && old.Origin == g.Origin && old.Principal == g.Principal && old.Subject != g.Subject && !old.Permissions.Call
}

// Find implements [policy.Store]. For a superseded version, the error is a
// [*lease.NotGrantedError].
func (s *Store) Find(ctx context.Context, p policy.Principal, subject policy.Digest, session string) (*policy.Grant, error) {
	g, err := s.grants.Find(ctx, p, subject, session)
	if err != nil && !errors.Is(err, policy.ErrNotGranted) {
		return nil, err
	}
	all, unreadable := s.readRecords()
	if unreadable != nil {
		return nil, unreadable
	}
	found := all.find(p, subject)
	if len(found) == 0 {
		return g, err
	}
	if by := s.supersededBy(found); by != nil {
		return nil, &lease.NotGrantedError{
			Reason: fmt.Sprintf("superseded: %s was approved after %s", by.By.Short(), subject.Short()),
			Hint:   "update " + printable.Text(by.Grant.Name, 200) + ", or approve this version again after a review",
		}
	}
	if err == nil {
		return g, nil
	}
	for _, r := range slices.Backward(found) {
		if old := r.Grant; len(r.Scopes) > 0 && (old.Session == "" || old.Session == session) && !old.Expired(time.Now()) {
			return &old, nil
		}
	}
	return nil, err
}

// supersededBy returns the latest record in found in which a version is
// superseded, or nil if the version may still run. found lists the records of
// that version.
func (s *Store) supersededBy(found []record) (by *record) {
	for i, r := range found {
		if slices.ContainsFunc(r.Again, func(scope string) bool { return slices.Contains(s.options.Active, scope) }) {
			return nil
		}
		if len(r.Scopes) > 0 {
			by = &found[i]
		}
	}
	return by
}

// FindWith implements [lease.NeedsFinder].
func (s *Store) FindWith(ctx context.Context, p policy.Principal, subject policy.Digest, session string, needs []policy.Need) (*policy.Grant, error) {
	return s.Find(ctx, p, subject, session)
}

// List implements [policy.Store]. It does not return superseded approvals.
func (s *Store) List(ctx context.Context) ([]policy.Grant, []policy.Problem, error) {
	return s.grants.List(ctx)
}

// Superseded returns the superseded approvals, in the order in which they were
// superseded.
func (s *Store) Superseded() ([]Approval, error) {
	all, err := s.readRecords()
	var out []Approval
	for _, r := range all {
		if len(r.Scopes) > 0 {
			out = append(out, Approval{r.Grant, r.Scopes, r.By, r.At})
		}
	}
	return out, err
}

// Revoke implements [policy.Store]. It also deletes superseded approvals.
func (s *Store) Revoke(ctx context.Context, what string) ([]policy.Grant, error) {
	gone, err := s.grants.Revoke(ctx, what)
	if err != nil && !errors.Is(err, policy.ErrNotGranted) {
		return gone, err
	}
	all, unreadable := s.readRecords()
	if unreadable != nil {
		return gone, unreadable
	}
	matches := func(r record) bool { return r.matches(what, gone) }
	if !slices.ContainsFunc(all, matches) {
		return gone, err
	}
	err = s.changeRecords(ctx, func(all records) records {
		return slices.DeleteFunc(all, func(r record) bool {
			if !matches(r) {
				return false
			}
			if !slices.ContainsFunc(gone, func(g policy.Grant) bool { return g.ID == r.Grant.ID }) {
				gone = append(gone, r.Grant)
			}
			return true
		})
	})
	if err != nil {
		return gone, fmt.Errorf("revoke %.200q: %w", what, err)
	}
	if len(gone) == 0 { // another process was faster
		return nil, fmt.Errorf("revoke %.200q: %w", what, policy.ErrNotGranted)
	}
	return gone, nil
}
