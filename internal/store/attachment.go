package store

import (
	"context"
	"fmt"
	"time"
)

// Attachment describes a file in a conversation, or one of its earlier versions.
type Attachment struct {
	Session string
	Path    string // relative to the session's directory
	Step    int64  // last step of the transcript when it was written; 0 if unknown
	SHA256  string // hash of the content, in hexadecimal; "" in a version without a file, [DroppedVersion] without its content
	Size    int64  // set by Put
	Updated time.Time
}

const attachmentColumns = "session, path, step, sha256, size, updated"

func (a *Attachment) fields() []any {
	return []any{&a.Session, &a.Path, &a.Step, &a.SHA256, &a.Size, (*timestamp)(&a.Updated)}
}

// Limits for the earlier versions of the files in a session; see [Attachments.Prune].
const (
	MaxAttachmentVersions     = 500
	MaxAttachmentVersionBytes = 64 << 20
	MaxAttachmentMarks        = 10_000 // versions without content
)

// DroppedVersion is the SHA256 of a version whose content was dropped.
const DroppedVersion = "dropped"

// Attachments stores files in conversations. It keeps the versions that were
// replaced or deleted at a later step; after such changes, callers must call
// [Attachments.Prune]. Deleting a session deletes its files.
type Attachments struct{ c conn }

// Put stores a file of up to [MaxValue] bytes as the current version at its path.
// It fails with [ErrNotFound] if the session does not exist.
func (t Attachments) Put(ctx context.Context, a Attachment, data []byte) error {
	if len(data) > MaxValue {
		return fmt.Errorf("store file %.200q: %w: %d bytes, limit %d", a.Path, ErrInvalid, len(data), MaxValue)
	}
	if data == nil {
		data = []byte{}
	}
	a.Size, a.Updated = int64(len(data)), now()
	err := t.c.inTransaction(ctx, func(c conn) error {
		if _, err := c.retireAttachment(ctx, a.Session, a.Path); err != nil {
			return err
		}
		if _, err := c.exec(ctx, "DELETE FROM attachment_versions WHERE session = $1 AND path = $2 AND step = $3", a.Session, a.Path, a.Step); err != nil {
			return err
		}
		_, err := c.exec(ctx, "INSERT INTO attachments ("+attachmentColumns+", data) VALUES ($1, $2, $3, $4, $5, $6, $7)", append(a.fields(), data)...)
		return err
	})
	if err != nil {
		return fmt.Errorf("store file %.200q: %w", a.Path, toNotFound(err))
	}
	return nil
}

// listAttachmentsSQL is the query of [Attachments.List]. The index attachments_list
// has all of its columns, so that it does not read the content.
const listAttachmentsSQL = "SELECT " + attachmentColumns + " FROM attachments WHERE session = $1 ORDER BY path LIMIT $2"

// List returns up to [MaxPage] files of a session, sorted by path, without
// their content.
func (t Attachments) List(ctx context.Context, session string) ([]Attachment, error) {
	found, err := queryAll[Attachment](ctx, t.c, listAttachmentsSQL, session, MaxPage)
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

// ReadContent returns the content with the given hash from the files of a session and
// their versions. It fails with [ErrNotFound] if there is none.
func (t Attachments) ReadContent(ctx context.Context, session, sha256 string) ([]byte, error) {
	const where = " WHERE session = $1 AND sha256 = $2"
	data, err := queryScalar[[]byte](ctx, t.c, "SELECT data FROM attachments"+where+" UNION ALL SELECT data FROM attachment_versions"+where+" LIMIT 1", session, sha256)
	if err != nil {
		return nil, fmt.Errorf("read content %.64q: %w", sha256, err)
	}
	return data, nil
}

// Delete deletes a file after a step of the transcript. It fails with
// [ErrNotFound] if the file does not exist.
func (t Attachments) Delete(ctx context.Context, session, path string, step int64) error {
	found := false
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := c.retireAttachment(ctx, session, path)
		if found = n > 0; err != nil || !found { // a missing file must not fail the transaction
			return err
		}
		gone := Attachment{Session: session, Path: path, Step: step, Updated: now()}
		_, err = c.exec(ctx, "INSERT INTO attachment_versions ("+attachmentColumns+", data) VALUES ($1, $2, $3, $4, $5, $6, $7)"+replaceVersion, append(gone.fields(), []byte{})...)
		return err
	})
	if err == nil && !found {
		err = ErrNotFound
	}
	if err != nil {
		return fmt.Errorf("delete file %.200q: %w", path, err)
	}
	return nil
}

// Purge deletes a file and all of its versions. It fails with [ErrNotFound] if
// there are none.
func (t Attachments) Purge(ctx context.Context, session, path string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		var all int64
		for _, table := range []string{"attachments", "attachment_versions"} {
			n, err := c.exec(ctx, "DELETE FROM "+table+" WHERE session = $1 AND path = $2", session, path)
			if err != nil {
				return err
			}
			all += n
		}
		if all == 0 {
			return ErrNotFound
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("delete all versions of file %.200q: %w", path, err)
	}
	return nil
}

// ListVersions returns the versions of a session's files that are not current,
// sorted by path and step, including those without content.
func (t Attachments) ListVersions(ctx context.Context, session string) ([]Attachment, error) {
	found, err := queryAll[Attachment](ctx, t.c, "SELECT "+attachmentColumns+" FROM attachment_versions WHERE session = $1 ORDER BY path, step", session)
	if err != nil {
		return nil, fmt.Errorf("list versions of files of session %q: %w", session, err)
	}
	return found, nil
}

// Restore makes the version of a file that was written at the given step the
// current one. If there is no such version, it removes the current one. Both
// stay available as versions.
func (t Attachments) Restore(ctx context.Context, session, path string, step int64) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		if _, err := c.retireAttachment(ctx, session, path); err != nil {
			return err
		}
		const version = " FROM attachment_versions WHERE session = $1 AND path = $2 AND step = $3 AND " + hasContent
		if _, err := c.exec(ctx, "INSERT INTO attachments ("+attachmentColumns+", data) SELECT "+attachmentColumns+", data"+version, session, path, step); err != nil {
			return err
		}
		_, err := c.exec(ctx, "DELETE"+version, session, path, step)
		return err
	})
	if err != nil {
		return fmt.Errorf("restore file %.200q: %w", path, err)
	}
	return nil
}

// Move changes the step of a current file, if it exists.
func (t Attachments) Move(ctx context.Context, session, path string, step int64) error {
	if _, err := t.c.exec(ctx, "UPDATE attachments SET step = $3 WHERE session = $1 AND path = $2", session, path, step); err != nil {
		return fmt.Errorf("move file %.200q: %w", path, err)
	}
	return nil
}

// Keep makes the content of the current file at a path available as a version that
// belongs to no step, so that replacing the file at the same step does not delete it.
// [Attachments.ListVersions] returns such versions with a negative step.
func (t Attachments) Keep(ctx context.Context, session, path string) error {
	_, err := t.c.exec(ctx, `INSERT INTO attachment_versions (`+attachmentColumns+`, data) SELECT session, path,
		(SELECT COALESCE(MIN(step), -1) FROM attachment_versions WHERE session = $1 AND path = $2 AND step < -1) - 1, sha256, size, updated, data
		FROM attachments WHERE session = $1 AND path = $2`, session, path)
	if err != nil {
		return fmt.Errorf("keep version of file %.200q: %w", path, err)
	}
	return nil
}

// Prune drops the content of versions of a session's files beyond
// [MaxAttachmentVersions] and [MaxAttachmentVersionBytes], those of the earliest
// steps first. They remain as versions without content, like those of deletions, so
// that they are not mistaken for earlier versions. Of the versions without content,
// only the [MaxAttachmentMarks] of the latest steps remain.
func (t Attachments) Prune(ctx context.Context, session string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		_, err := c.exec(ctx, `UPDATE attachment_versions SET sha256 = '`+DroppedVersion+`', size = 0, data = $2 WHERE session = $1 AND (path, step) IN (
			SELECT path, step FROM (SELECT path, step, row_number() OVER w AS n, SUM(size) OVER w AS bytes FROM attachment_versions
				WHERE session = $1 AND `+hasContent+` WINDOW w AS (ORDER BY step DESC, path)) v WHERE n > $3 OR bytes > $4)`,
			session, []byte{}, MaxAttachmentVersions, MaxAttachmentVersionBytes)
		if err != nil {
			return err
		}
		_, err = c.exec(ctx, `DELETE FROM attachment_versions WHERE session = $1 AND (path, step) IN (
			SELECT path, step FROM (SELECT path, step, row_number() OVER (ORDER BY step DESC, path) AS n FROM attachment_versions
				WHERE session = $1 AND NOT `+hasContent+`) v WHERE n > $2)`, session, MaxAttachmentMarks)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete old file versions of session %q: %w", session, err)
	}
	return nil
}

// replaceVersion ends a statement that adds versions of files.
const replaceVersion = " ON CONFLICT (session, path, step) DO UPDATE SET sha256 = excluded.sha256, size = excluded.size, updated = excluded.updated, data = excluded.data"

// retireAttachment turns the current version of a file, if there is one, into an
// earlier version. It returns the number of changed versions, 0 or 1.
func (c conn) retireAttachment(ctx context.Context, session, path string) (int64, error) {
	const current = " FROM attachments WHERE session = $1 AND path = $2"
	if _, err := c.exec(ctx, "INSERT INTO attachment_versions ("+attachmentColumns+", data) SELECT "+attachmentColumns+", data"+current+replaceVersion, session, path); err != nil {
		return 0, err
	}
	return c.exec(ctx, "DELETE"+current, session, path)
}

// hasContent is the condition for a version that can be restored.
const hasContent = "sha256 NOT IN ('', '" + DroppedVersion + "')"
