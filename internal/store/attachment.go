package store

import (
	"context"
	"fmt"
	"time"
)

// Attachment describes a file in a conversation.
type Attachment struct {
	Session string
	Path    string // relative to the session's directory
	SHA256  string // hash of the content, in hexadecimal
	Size    int64  // set by Put
	Updated time.Time
}

const attachmentColumns = "session, path, sha256, size, updated"

func (a *Attachment) fields() []any {
	return []any{&a.Session, &a.Path, &a.SHA256, &a.Size, (*timestamp)(&a.Updated)}
}

// Attachments stores files in conversations. Deleting a session deletes its
// files.
type Attachments struct{ c conn }

// Put stores a file of up to [MaxValue] bytes, replacing any file at the same
// path. It fails with [ErrNotFound] if the session does not exist.
func (t Attachments) Put(ctx context.Context, a Attachment, data []byte) error {
	if len(data) > MaxValue {
		return fmt.Errorf("store file %.200q: %w: %d bytes, limit %d", a.Path, ErrInvalid, len(data), MaxValue)
	}
	if data == nil {
		data = []byte{}
	}
	a.Size, a.Updated = int64(len(data)), now()
	_, err := t.c.exec(ctx, "INSERT INTO attachments ("+attachmentColumns+`, data) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (session, path) DO UPDATE SET sha256 = excluded.sha256, size = excluded.size, updated = excluded.updated, data = excluded.data`,
		append(a.fields(), data)...)
	if err != nil {
		return fmt.Errorf("store file %.200q: %w", a.Path, toNotFound(err))
	}
	return nil
}

// List returns up to [MaxPage] files of a session, sorted by path, without
// their content.
func (t Attachments) List(ctx context.Context, session string) ([]Attachment, error) {
	found, err := queryAll[Attachment](ctx, t.c, "SELECT "+attachmentColumns+" FROM attachments WHERE session = $1 ORDER BY path LIMIT $2", session, MaxPage)
	if err != nil {
		return nil, fmt.Errorf("list files of session %q: %w", session, err)
	}
	return found, nil
}

// Read returns the content of a file. It fails with [ErrNotFound] if the file
// does not exist.
func (t Attachments) Read(ctx context.Context, session, path string) ([]byte, error) {
	data, err := queryScalar[[]byte](ctx, t.c, "SELECT data FROM attachments WHERE session = $1 AND path = $2", session, path)
	if err != nil {
		return nil, fmt.Errorf("read file %.200q: %w", path, err)
	}
	return data, nil
}

// Delete deletes a file. It fails with [ErrNotFound] if the file does not
// exist.
func (t Attachments) Delete(ctx context.Context, session, path string) error {
	if err := t.c.execAffecting(ctx, "DELETE FROM attachments WHERE session = $1 AND path = $2", session, path); err != nil {
		return fmt.Errorf("delete file %.200q: %w", path, err)
	}
	return nil
}
