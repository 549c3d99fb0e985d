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

// FileStore stores each grant in a file of a directory. Any number of processes
// of one user can use it at the same time. A lock serializes changes, which are
// synced to disk before a method returns. Lookups take no lock and see each
// change completely or not at all.
//
// The directory and its files must belong to the user, must not be writable by
// others, and must not be symbolic links. Otherwise methods return an
// [*UnsafeFileError]. [FileStore.List] reports such a file, a damaged file or
// one of a newer version as a problem instead. A missing directory is an empty
// store. Files of grants are not meant to be edited: a file that differs from
// what this program writes counts as damaged.
type FileStore struct{ dir string }

var _ Store = (*FileStore)(nil)

// NewFileStore returns the store in dir. Put creates the directory if
// necessary. The store keeps no files open.
func NewFileStore(dir string) *FileStore { return &FileStore{dir: dir} }

// Put stores a grant.
func (s *FileStore) Put(ctx context.Context, g Grant) (Grant, error) {
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return Grant{}, fmt.Errorf("store grant: %w", err)
	}
	err := s.withLock(ctx, func(root *os.Root) error {
		now := time.Now()
		fresh, err := g.prepare(now)
		if err != nil {
			return err
		}
		g = fresh
		if err := s.removeExpired(root, g.ID, now); err != nil {
			return err
		}
		return s.write(root, g)
	})
	if err != nil {
		return Grant{}, fmt.Errorf("store grant: %w", err)
	}
	return g.clone(), nil
}

// Find returns the newest grant that applies. It reports an unreadable file
// only if no other grant applies.
func (s *FileStore) Find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	g, err := s.find(ctx, p, subject, session)
	if err != nil && !errors.Is(err, ErrNotGranted) {
		return nil, fmt.Errorf("find grant: %w", err)
	}
	return g, err
}

func (s *FileStore) find(ctx context.Context, p Principal, subject Digest, session string) (*Grant, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	root, err := openDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return newestGrant(nil, p, subject, session)
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	var found []Grant
	var bad error
	for _, id := range candidateIDs(p, subject, session) {
		g, err := s.read(root, id)
		switch {
		case err == nil:
			found = append(found, g)
		case !errors.Is(err, fs.ErrNotExist):
			bad = errors.Join(bad, err)
		}
	}
	g, err := newestGrant(found, p, subject, session)
	if err != nil && bad != nil {
		return nil, bad
	}
	return g, err
}

// List returns all grants.
func (s *FileStore) List(ctx context.Context) ([]Grant, []Problem, error) {
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

// Revoke deletes grants.
func (s *FileStore) Revoke(ctx context.Context, what string) ([]Grant, error) {
	var gone []Grant
	err := s.withLock(ctx, func(root *os.Root) error {
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

var errNoStore = errors.New("grant store does not exist")

// withLock runs f while no other process changes the store. It returns
// errNoStore if the directory does not exist.
func (s *FileStore) withLock(ctx context.Context, f func(*os.Root) error) error {
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
	if err := filelock.Lock(ctx, lock); err != nil {
		return err
	}
	return f(root)
}

// list reads all grants in root.
func (s *FileStore) list(ctx context.Context, root *os.Root) ([]Grant, []Problem, error) {
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
		case !errors.Is(err, fs.ErrNotExist): // revoked meanwhile
			problems = append(problems, Problem{Where: s.path(id), Message: problemText(err)})
		}
	}
	sortGrants(grants)
	return grants, problems, nil
}

// problemText returns the message of err without the path, which the problem
// names already.
func problemText(err error) string {
	if u, ok := errors.AsType[*UnsafeFileError](err); ok {
		return u.Reason
	}
	if d, ok := errors.AsType[*damagedError](err); ok {
		return escapeText(d.err.Error(), 1000)
	}
	return escapeText(err.Error(), 1000)
}

// damagedError reports a file that holds no valid grant.
type damagedError struct {
	path string
	err  error
}

func (e *damagedError) Error() string { return e.path + ": " + e.err.Error() }
func (e *damagedError) Unwrap() error { return e.err }

func (s *FileStore) path(id string) string { return filepath.Join(s.dir, id+suffix) }

func (s *FileStore) read(root *os.Root, id string) (Grant, error) {
	data, err := readFile(root, id+suffix, s.path(id), MaxGrantBytes)
	if err != nil {
		return Grant{}, err
	}
	g, err := decodeGrant(data)
	if err == nil && g.ID != id {
		err = fmt.Errorf("contains grant %s", g.ID)
	}
	if err != nil {
		return Grant{}, &damagedError{s.path(id), err}
	}
	return g, nil
}

// write replaces the file of a grant atomically and syncs it to disk.
func (s *FileStore) write(root *os.Root, g Grant) error {
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

// removeExpired deletes grants that expired long ago and temporary files of
// killed processes. It returns errTooMany if there is no room for id.
func (s *FileStore) removeExpired(root *os.Root, id string, now time.Time) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return err
	}
	others := 0
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), tempPrefix) { // only holders of the lock write such files, so it is stale
			if err := root.Remove(e.Name()); err != nil {
				return err
			}
			continue
		}
		other, ok := strings.CutSuffix(e.Name(), suffix)
		if !ok || other == id {
			continue
		}
		if g, err := s.read(root, other); err == nil && g.isForgettable(now) {
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
