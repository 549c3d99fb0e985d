package policy

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

const suffix = ".json"

// FileStore stores each grant in a file of a directory. Any number of processes
// of one user can use it at the same time. A lock serializes changes, which are
// synced to disk before a method returns. Lookups take no lock and see each
// change completely or not at all.
//
// The directory and its files must belong to the user, must not be writable by
// others, and must not be symbolic links. Otherwise methods return an error.
// [FileStore.List] reports such a file, a damaged file or one of a newer version
// as a problem instead. A missing directory is an empty
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
	err := privatefile.LockDir(ctx, s.dir, func(root *os.Root) error {
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
	root, err := privatefile.OpenDir(s.dir)
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
	root, err := privatefile.OpenDir(s.dir)
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
	err := privatefile.LockDir(ctx, s.dir, func(root *os.Root) error {
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
		return errors.Join(err, privatefile.SyncDir(root))
	})
	switch {
	case err != nil && !errors.Is(err, privatefile.ErrNoDir):
		return gone, fmt.Errorf("revoke %.200q: %w", what, err)
	case len(gone) == 0:
		return nil, fmt.Errorf("revoke %.200q: %w", what, ErrNotGranted)
	}
	return gone, nil
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
			problems = append(problems, Problem{Where: s.path(id), Message: privatefile.Reason(err)})
		}
	}
	sortGrants(grants)
	return grants, problems, nil
}

func (s *FileStore) path(id string) string { return filepath.Join(s.dir, id+suffix) }

func (s *FileStore) read(root *os.Root, id string) (Grant, error) {
	data, err := privatefile.ReadFile(root, id+suffix, s.path(id), maxGrantBytes)
	if err != nil {
		return Grant{}, err
	}
	g, err := decodeGrant(data)
	if err == nil && g.ID != id {
		err = fmt.Errorf("contains grant %s", g.ID)
	}
	if err != nil {
		return Grant{}, &privatefile.DamagedError{Path: s.path(id), Err: err}
	}
	return g, nil
}

// write replaces the file of a grant atomically and syncs it to disk.
func (s *FileStore) write(root *os.Root, g Grant) error {
	data, err := g.encode()
	if err != nil {
		return err
	}
	return privatefile.ReplaceFile(root, g.ID+suffix, data)
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
		if strings.HasPrefix(e.Name(), privatefile.TempPrefix) { // only holders of the lock write such files, so it is stale
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
