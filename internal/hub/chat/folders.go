package chat

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/printable"
	"github.com/loadout-dev/loadout/internal/store"
)

// MaxFolderName is the maximum length of the name of a folder, in characters.
const MaxFolderName = 60

// ErrNoFolder is returned if a user has no folder with an ID.
var ErrNoFolder = errors.New("folder not found")

// ConversationFolder is a folder of a user's conversations.
type ConversationFolder struct {
	ID       string `json:"id"`
	Name     string `json:"name"`
	Sessions int64  `json:"sessions" doc:"Number of its conversations that are not archived"`
	Pinned   int64  `json:"pinned" doc:"How many of them are pinned"`
}

// Folders returns the principal's folders, sorted by name.
func (e *Engine) Folders(ctx context.Context, p account.Principal) ([]ConversationFolder, error) {
	if err := account.Check(p, account.SessionRead, account.OwnedBy(p.User)); err != nil {
		return nil, err
	}
	found, err := e.db.Folders.List(ctx, string(p.User))
	if err != nil {
		return nil, err
	}
	out := make([]ConversationFolder, len(found))
	for i, f := range found {
		out[i] = ConversationFolder{f.ID, f.Name, f.Sessions, f.Pinned}
	}
	return out, nil
}

// CreateFolder creates a folder for the principal. It fails with [store.ErrExists] if
// the principal has one with the name, and with [store.ErrTooMany] if the principal
// has [store.MaxFolders].
func (e *Engine) CreateFolder(ctx context.Context, p account.Principal, name string) (ConversationFolder, error) {
	if err := account.Check(p, account.SessionWrite, account.OwnedBy(p.User)); err != nil {
		return ConversationFolder{}, err
	}
	name, err := checkFolderName(name)
	if err != nil {
		return ConversationFolder{}, err
	}
	var made store.Folder
	err = e.db.Tx(ctx, func(tx *store.Tx) error {
		if made, err = tx.Folders.Create(ctx, store.Folder{Owner: string(p.User), Name: name}); err != nil {
			return err
		}
		return tx.Audit.Append(ctx, folderRecord(p.User, "folder.create", made.ID))
	})
	return ConversationFolder{ID: made.ID, Name: made.Name}, err
}

// RenameFolder changes the name of a folder.
func (e *Engine) RenameFolder(ctx context.Context, p account.Principal, id, name string) error {
	name, err := checkFolderName(name)
	if err != nil {
		return err
	}
	return e.changeFolder(ctx, p, id, "folder.rename", func(tx *store.Tx) error { return tx.Folders.Rename(ctx, id, name) })
}

// DeleteFolder deletes a folder. Its conversations remain.
func (e *Engine) DeleteFolder(ctx context.Context, p account.Principal, id string) error {
	return e.changeFolder(ctx, p, id, "folder.delete", func(tx *store.Tx) error { return tx.Folders.Delete(ctx, id) })
}

// changeFolder calls change in a transaction, if the principal may change the folder.
func (e *Engine) changeFolder(ctx context.Context, p account.Principal, id, action string, change func(*store.Tx) error) error {
	if err := account.Check(p, account.SessionWrite, account.OwnedBy(p.User)); err != nil {
		return err
	}
	return e.db.Tx(ctx, func(tx *store.Tx) error {
		if err := checkFolder(ctx, &tx.Tables, string(p.User), id); err != nil {
			return err
		}
		if err := change(tx); err != nil {
			return err
		}
		return tx.Audit.Append(ctx, folderRecord(p.User, action, id))
	})
}

// checkFolder returns [store.ErrNotFound] if a user has no folder with the ID.
func checkFolder(ctx context.Context, t *store.Tables, owner, id string) error {
	f, err := t.Folders.Get(ctx, id)
	if err == nil && f.Owner != owner {
		err = fmt.Errorf("folder %q: %w", id, store.ErrNotFound)
	}
	return err
}

// checkFolderName returns the name as a single line. It returns an error if the name
// is empty or too long.
func checkFolderName(name string) (string, error) {
	name = strings.TrimSpace(printable.OneLine(name))
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxFolderName || !utf8.ValidString(name) {
		return "", fmt.Errorf("folder name: %w: must be UTF-8 of 1 to %d characters, got %d", ErrInvalid, MaxFolderName, n)
	}
	return name, nil
}

func folderRecord(by account.UserID, action, id string) store.AuditRecord {
	return store.AuditRecord{Actor: string(by), Action: action, Namespace: store.UserNamespace(string(by)), Subject: "folder/" + id, Decision: "allowed"}
}
