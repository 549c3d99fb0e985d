// Package heldchange stores changes to steering files (package steering) that
// were made while no user could be asked about them. It keeps a change for 30
// days, or until the user applies or discards it. It uses one file for each
// workspace. A stored change is not applied if its file has changed since.
package heldchange

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/overlay"
	"github.com/loadout-dev/loadout/internal/privatefile"
)

const (
	version   = 1
	maxCount  = 200     // maximum number of changes in a directory
	maxBytes  = 8 << 20 // maximum size of a file in a [Store]
	retention = 30 * 24 * time.Hour
)

// Change is a stored change with its author and time.
type Change struct {
	overlay.Stored
	By   string    `json:"by,omitempty"` // name of the skill, or "" for a command of the agent
	Time time.Time `json:"time"`
}

// file is the JSON content of a file in a [Store]: the changes in one
// directory.
type file struct {
	Version int      `json:"version"`
	Dir     string   `json:"dir"`
	Changes []Change `json:"changes"` // changes, in the order in which they can be applied
}

// Store is a directory of files with changes. Several processes can use it at
// the same time.
type Store struct {
	dir string
	now func() time.Time
}

// New returns the store in a directory, which is created when a change is
// stored.
func New(dir string) *Store { return &Store{dir, time.Now} }

func (s *Store) file(workspace string) *privatefile.File {
	sum := sha256.Sum256([]byte(workspace))
	return privatefile.New(filepath.Join(s.dir, hex.EncodeToString(sum[:12])+".json"), maxBytes)
}

// resolve resolves the symlinks in the path of a directory.
func resolve(workspace string) string {
	if real, err := filepath.EvalSymlinks(workspace); err == nil {
		return real
	}
	return filepath.Clean(workspace)
}

// Add stores changes to files in a workspace, either all or none. A change
// replaces an older change to the same file. Add returns an error if there
// would be too many changes.
func (s *Store) Add(ctx context.Context, workspace, by string, changes []overlay.Stored) error {
	now := s.now().UTC().Round(time.Second)
	err := s.change(ctx, workspace, func(all []Change) ([]Change, error) {
		all = slices.DeleteFunc(all, func(c Change) bool {
			return slices.ContainsFunc(changes, func(n overlay.Stored) bool { return n.Path == c.Path })
		})
		for _, c := range changes {
			all = append(all, Change{Stored: c, By: by, Time: now})
		}
		if len(all) > maxCount {
			return nil, fmt.Errorf("too many pending changes (%d, limit %d)", len(all), maxCount)
		}
		return all, nil
	})
	if err != nil {
		return fmt.Errorf("store pending changes: %w", err)
	}
	return nil
}

// Remove removes stored changes to files in a workspace, unless they were
// replaced in the meantime.
func (s *Store) Remove(ctx context.Context, workspace string, changes []Change) error {
	err := s.change(ctx, workspace, func(all []Change) ([]Change, error) {
		return slices.DeleteFunc(all, func(c Change) bool {
			return slices.ContainsFunc(changes, func(r Change) bool {
				return r.Path == c.Path && r.Time.Equal(c.Time) && slices.Equal(r.Content, c.Content)
			})
		}), nil
	})
	if err != nil {
		return fmt.Errorf("remove pending changes: %w", err)
	}
	return nil
}

func (s *Store) change(ctx context.Context, workspace string, edit func([]Change) ([]Change, error)) error {
	workspace = resolve(workspace)
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return err
	}
	return s.file(workspace).Change(ctx, func(old []byte) ([]byte, error) {
		var all []Change
		if old != nil {
			f, err := s.decode(old)
			if err != nil {
				return nil, err
			}
			all = f.Changes
		}
		all, err := edit(all)
		if err != nil {
			return nil, err
		}
		data, err := json.Marshal(file{version, workspace, all})
		if err == nil && len(data) > maxBytes {
			err = fmt.Errorf("pending changes too large (%d bytes, limit %d)", len(data), maxBytes)
		}
		return data, err
	})
}

// List returns the stored changes to files in a workspace that are at most 30
// days old.
func (s *Store) List(workspace string) ([]Change, error) {
	f, err := s.read(s.file(resolve(workspace)))
	if err != nil {
		return nil, fmt.Errorf("list pending changes: %w", err)
	}
	return f.Changes, nil
}

func (s *Store) read(in *privatefile.File) (file, error) {
	data, err := in.Read()
	if errors.Is(err, fs.ErrNotExist) {
		return file{}, nil
	}
	if err != nil {
		return file{}, err
	}
	return s.decode(data)
}

// decode decodes the content of a file and drops the changes that have expired.
func (s *Store) decode(data []byte) (file, error) {
	var head struct {
		Version int `json:"version"`
	}
	if err := json.Unmarshal(data, &head); err != nil {
		return file{}, fmt.Errorf("file is damaged: %w", err)
	}
	if head.Version != version {
		return file{}, fmt.Errorf("version %d of pending changes is not supported (want %d): update loadout", head.Version, version)
	}
	var f file
	if err := json.Unmarshal(data, &f); err != nil {
		return file{}, fmt.Errorf("file is damaged: %w", err)
	}
	for i := range f.Changes {
		if err := f.Changes[i].Check(); err != nil {
			return file{}, fmt.Errorf("file is damaged: %w", err)
		}
	}
	oldest := s.now().Add(-retention)
	f.Changes = slices.DeleteFunc(f.Changes, func(c Change) bool { return c.Time.Before(oldest) })
	return f, nil
}

// Dirs returns the directories that have changes, sorted. It ignores files that
// cannot be read.
func (s *Store) Dirs() []string {
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return nil
	}
	var out []string
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		f, err := s.read(privatefile.New(filepath.Join(s.dir, e.Name()), maxBytes))
		if err == nil && len(f.Changes) > 0 {
			out = append(out, f.Dir)
		}
	}
	slices.SortFunc(out, cmp.Compare[string])
	return out
}
