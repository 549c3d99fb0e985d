package store

import (
	"context"
	"fmt"
	"time"
)

// Folder is a folder of a user's conversations. A conversation is in at most one.
type Folder struct {
	ID      string // set by Create if ""
	Owner   string // a user id
	Name    string // unique among the folders of the owner
	Created time.Time
}

const folderColumns = "id, owner, name, created"

func (f *Folder) fields() []any {
	return []any{&f.ID, &f.Owner, &f.Name, (*timestamp)(&f.Created)}
}

// CountedFolder is a folder with the number of its sessions that are not archived.
type CountedFolder struct {
	Folder
	Sessions int64
	Pinned   int64 // how many of the sessions are pinned
}

func (f *CountedFolder) fields() []any {
	return append(f.Folder.fields(), &f.Sessions, &f.Pinned)
}

// MaxFolders is the maximum number of folders of a user.
const MaxFolders = 100

// Folders stores folders of conversations. Deleting a user deletes the user's folders.
type Folders struct{ c conn }

// Create adds a folder and returns it as stored. It fails with [ErrExists] if the
// owner has a folder with the name, with [ErrTooMany] if the owner has [MaxFolders],
// and with [ErrNotFound] if the owner does not exist.
func (t Folders) Create(ctx context.Context, f Folder) (Folder, error) {
	setDefaultID(&f.ID)
	setDefaultTime(&f.Created)
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM folders WHERE owner = $1", f.Owner)
		if err != nil {
			return err
		}
		if n >= MaxFolders {
			return fmt.Errorf("%w: %d folders, limit %d", ErrTooMany, n+1, MaxFolders)
		}
		return toNotFound(c.insert(ctx, "folders", folderColumns, f.fields()))
	})
	if err != nil {
		return Folder{}, fmt.Errorf("create folder %q: %w", f.Name, err)
	}
	return f, nil
}

// Get returns the folder with the given id.
func (t Folders) Get(ctx context.Context, id string) (Folder, error) {
	f, err := queryOne[Folder](ctx, t.c, "SELECT "+folderColumns+" FROM folders WHERE id = $1", id)
	if err != nil {
		return Folder{}, fmt.Errorf("get folder %q: %w", id, err)
	}
	return f, nil
}

// List returns a user's folders, sorted by name.
func (t Folders) List(ctx context.Context, owner string) ([]CountedFolder, error) {
	found, err := queryAll[CountedFolder](ctx, t.c, `SELECT id, owner, name, created,
		(SELECT count(*) FROM sessions s WHERE s.owner = f.owner AND s.archived = FALSE AND s.folder = f.id),
		(SELECT count(*) FROM sessions s WHERE s.owner = f.owner AND s.archived = FALSE AND s.folder = f.id AND s.pinned = TRUE)
		FROM folders f WHERE owner = $1 ORDER BY name`, owner)
	if err != nil {
		return nil, fmt.Errorf("list folders of user %q: %w", owner, err)
	}
	return found, nil
}

// Rename changes the name of a folder. It fails with [ErrExists] if its owner has
// another folder with the name.
func (t Folders) Rename(ctx context.Context, id, name string) error {
	if err := t.c.execAffecting(ctx, "UPDATE folders SET name = $2 WHERE id = $1", id, name); err != nil {
		return fmt.Errorf("rename folder %q: %w", id, err)
	}
	return nil
}

// Delete deletes a folder. Its sessions remain, without a folder.
func (t Folders) Delete(ctx context.Context, id string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		f, err := queryOne[Folder](ctx, c, "SELECT "+folderColumns+" FROM folders WHERE id = $1", id)
		if err != nil {
			return err
		}
		if _, err := c.exec(ctx, "UPDATE sessions SET folder = '', generation = generation + 1 WHERE owner = $1 AND folder = $2", f.Owner, id); err != nil {
			return err
		}
		return c.execAffecting(ctx, "DELETE FROM folders WHERE id = $1", id)
	})
	if err != nil {
		return fmt.Errorf("delete folder %q: %w", id, err)
	}
	return nil
}
