package policy

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/loadout-dev/loadout/internal/privatefile"
)

const suffix = ".json"

// NewFileStore returns a store with a file in dir for each grant. Any number of
// processes of the same user can use dir concurrently. Changes are serialized
// by a lock and are synced to disk before a method returns. Lookups take no
// lock; they see each change completely or not at all.
//
// The directory and its files must belong to the user, must not be writable by
// others, and must not be symbolic links. Otherwise methods return an error,
// except that List reports the file as a problem. List also reports files that
// are damaged or have a newer version. Grant files are not meant to be edited:
// a file that differs from what this program writes is treated as damaged.
//
// Put creates the directory if necessary. A missing directory is an empty
// store. The store does not keep files open.
func NewFileStore(dir string) Store { return NewStore(fileRows{dir}) }

// fileRows implements [Rows] with a file for each row.
type fileRows struct{ dir string }

func (f fileRows) path(id string) string { return filepath.Join(f.dir, id+suffix) }

func (f fileRows) List(ctx context.Context, ids []string) ([]Row, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	root, err := privatefile.OpenDir(f.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer root.Close()
	if ids == nil {
		if ids, err = listIDs(root); err != nil {
			return nil, err
		}
	}
	var rows []Row
	for _, id := range ids {
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if r := f.read(root, id); !errors.Is(r.err, fs.ErrNotExist) { // revoked in the meantime
			rows = append(rows, r)
		}
	}
	return rows, nil
}

// listIDs returns the IDs of all rows in root.
func listIDs(root *os.Root) ([]string, error) {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return nil, err
	}
	var ids []string
	for _, e := range entries {
		if id, ok := strings.CutSuffix(e.Name(), suffix); ok && !strings.HasPrefix(id, ".") {
			ids = append(ids, id)
		}
	}
	return ids, nil
}

func (f fileRows) read(root *os.Root, id string) Row {
	r := Row{ID: id, path: f.path(id)}
	r.Data, r.err = privatefile.ReadFile(root, id+suffix, r.path, maxGrantBytes)
	return r
}

// Put replaces a row's file atomically. It removes temporary files that killed
// processes left behind.
func (f fileRows) Put(ctx context.Context, r Row) error {
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return err
	}
	return privatefile.LockDir(ctx, f.dir, func(root *os.Root) error {
		entries, err := fs.ReadDir(root.FS(), ".")
		if err != nil {
			return err
		}
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), privatefile.TempPrefix) { // stale: such files are only written while holding the lock
				if err := root.Remove(e.Name()); err != nil {
					return err
				}
			}
		}
		return privatefile.ReplaceFile(root, r.ID+suffix, r.Data)
	})
}

func (f fileRows) Delete(ctx context.Context, r Row) (deleted bool, err error) {
	err = privatefile.LockDir(ctx, f.dir, func(root *os.Root) error {
		if now := f.read(root, r.ID); (now.err == nil) != (r.err == nil) || !bytes.Equal(now.Data, r.Data) {
			return nil
		}
		switch err := root.Remove(r.ID + suffix); {
		case errors.Is(err, fs.ErrNotExist):
			return nil
		case err != nil:
			return err
		}
		deleted = true
		return privatefile.SyncDir(root)
	})
	if errors.Is(err, privatefile.ErrNoDir) {
		err = nil
	}
	return deleted, err
}
