package policy

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/filelock"
)

const (
	suffix     = ".json"
	lockName   = ".lock"
	tempPrefix = ".new-"
)

// Files keeps each grant in a file of a directory, for any number of processes
// of one user at once. Changes wait for each other through a lock and are on
// disk when a method returns; looking up takes no lock and sees a change whole
// or not at all.
//
// The directory and its files have to belong to the user, be writable by
// nobody else, and be no symbolic links; else methods fail with an
// [*UnsafeError]. That holds for a single file too, but in List, where it is a
// problem among others, as is a file that is damaged or of a newer version.
// Where there is no directory there are no grants. Files of grants are not for
// editing: one that is not as this program writes it is taken for damaged.
type Files struct{ dir string }

var _ Store = (*Files)(nil)

// NewFiles returns the store in dir, which Put makes where it is missing.
// Nothing is kept open.
func NewFiles(dir string) *Files { return &Files{dir: dir} }

// Put keeps a grant.
func (s *Files) Put(ctx context.Context, g Grant) (Grant, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return Grant{}, fmt.Errorf("keep a grant: %w", err)
	}
	err := s.change(ctx, func(root *os.Root) error {
		now := time.Now()
		fresh, err := g.fresh(now)
		if err != nil {
			return err
		}
		g = fresh
		if err := s.sweep(root, g.ID, now); err != nil {
			return err
		}
		return s.write(root, g)
	})
	if err != nil {
		return Grant{}, fmt.Errorf("keep a grant: %w", err)
	}
	return g.clone(), nil
}

// Find returns the newest grant that applies. A file that cannot be read is an
// error only where no other grant applies.
func (s *Files) Find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	g, err := s.find(ctx, p, subject, session)
	if err != nil && !errors.Is(err, ErrNotGranted) {
		return nil, fmt.Errorf("look for a grant: %w", err)
	}
	return g, err
}

func (s *Files) find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return newest(nil, p, subject, session)
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found []Grant
	var bad error
	for _, id := range candidates(p, subject, session) {
		g, err := s.read(root, id)
		switch {
		case err == nil:
			found = append(found, g)
		case !errors.Is(err, fs.ErrNotExist):
			bad = errors.Join(bad, err)
		}
	}
	g, err := newest(found, p, subject, session)
	if err != nil && bad != nil {
		return nil, bad
	}
	return g, err
}

// List returns all grants.
func (s *Files) List(ctx context.Context) ([]Grant, []Problem, error) {
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, fmt.Errorf("list grants: %w", err)
	}
	defer root.Close()
	grants, problems, err := s.list(ctx, root)
	if err != nil {
		return nil, nil, fmt.Errorf("list grants: %w", err)
	}
	return grants, problems, nil
}

// Revoke withdraws grants.
func (s *Files) Revoke(ctx context.Context, what string) ([]Grant, error) {
	var gone []Grant
	err := s.change(ctx, func(root *os.Root) error {
		grants, problems, err := s.list(ctx, root)
		if err != nil {
			return err
		}
		for _, p := range problems {
			if id := strings.TrimSuffix(filepath.Base(p.Where), suffix); id == what {
				grants = []Grant{{ID: id}}
			}
		}
		for _, g := range selectGrants(grants, what) {
			switch e := root.Remove(g.ID + suffix); {
			case e == nil:
				gone = append(gone, g)
			case !errors.Is(e, fs.ErrNotExist):
				err = errors.Join(err, e)
			}
		}
		return errors.Join(err, syncDir(root))
	})
	switch {
	case err != nil && !errors.Is(err, errNoStore):
		return gone, fmt.Errorf("revoke %.200q: %w", what, err)
	case len(gone) == 0:
		return nil, fmt.Errorf("revoke %.200q: %w", what, ErrNotGranted)
	}
	return gone, nil
}

var errNoStore = errors.New("there is no store yet")

// change runs f while no other changes the store, here or elsewhere. It fails
// with errNoStore where there is no directory.
func (s *Files) change(ctx context.Context, f func(*os.Root) error) error {
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return errNoStore
	}
	if err != nil {
		return err
	}
	defer root.Close()
	lock, err := openFile(root, lockName, filepath.Join(s.dir, lockName), os.O_RDWR|os.O_CREATE)
	if err != nil {
		return err
	}
	defer lock.Close()
	if err := filelock.Wait(ctx, lock); err != nil {
		return err
	}
	return f(root)
}

// list reads every grant of root.
func (s *Files) list(ctx context.Context, root *os.Root) ([]Grant, []Problem, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, nil, err
	}
	var grants []Grant
	var problems []Problem
	for _, e := range entries {
		if err := context.Cause(ctx); err != nil {
			return nil, nil, err
		}
		id, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || strings.HasPrefix(id, ".") {
			continue
		}
		g, err := s.read(root, id)
		switch {
		case err == nil:
			grants = append(grants, g)
		case !errors.Is(err, fs.ErrNotExist): // revoked in between
			problems = append(problems, Problem{Where: s.path(id), Message: reason(err)})
		}
	}
	sortGrants(grants)
	return grants, problems, nil
}

// reason is the message without the path that the problem has already.
func reason(err error) string {
	if u, ok := errors.AsType[*UnsafeError](err); ok {
		return u.Reason
	}
	if d, ok := errors.AsType[*damagedError](err); ok {
		return visible(d.err.Error(), 1000)
	}
	return visible(err.Error(), 1000)
}

// damagedError is a file that holds no grant.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string { return e.path + ": " + e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

func (s *Files) path(id string) string { return filepath.Join(s.dir, id+suffix) }

func (s *Files) read(root *os.Root, id string) (Grant, error) {
	data, err := readFile(root, id+suffix, s.path(id), MaxGrantBytes)
	if err != nil {
		return Grant{}, err
	}
	g, err := decodeGrant(data)
	if err == nil && g.ID != id {
		err = fmt.Errorf("it holds the grant %s", g.ID)
	}
	if err != nil {
		return Grant{}, &damagedError{s.path(id), err}
	}
	return g, nil
}

// write puts a grant in place, whole and on disk.
func (s *Files) write(root *os.Root, g Grant) error {
	data, err := g.encode()
	if err != nil {
		return err
	}
	temp := tempPrefix + rand.Text()
	f, err := root.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	err = errors.Join(err, f.Sync(), f.Close())
	if err == nil {
		err = root.Rename(temp, g.ID+suffix)
	}
	if err != nil {
		return errors.Join(err, root.Remove(temp))
	}
	return syncDir(root)
}

// sweep removes what is of no more use: grants that expired long ago, and what
// a process that was killed left. It fails where there is no room for id.
func (s *Files) sweep(root *os.Root, id string, now time.Time) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	others := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) { // who writes one has the lock, so nobody does
			if err := root.Remove(e.Name()); err != nil {
				return err
			}
			continue
		}
		other, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || other == id {
			continue
		}
		if g, err := s.read(root, other); err == nil && g.forgettable(now) {
			if err := root.Remove(e.Name()); err != nil {
				return err
			}
			continue
		}
		others++
	}
	if others >= maxGrants {
		return errTooMany
	}
	return nil
}
