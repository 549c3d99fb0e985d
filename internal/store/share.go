package store

import (
	"context"
	"fmt"
	"time"
)

// Share is a snapshot of a conversation that its owner shares. It is immutable.
type Share struct {
	ID       string // set by Create if ""
	Link     string // secret part of the address
	Session  string
	Owner    string // a user id
	Audience string
	Title    string
	Size     int64 // of the snapshot and the files, in bytes
	Created  time.Time
	Expires  time.Time
}

const shareColumns = "id, link, session, owner, audience, title, size, created, expires"

func (s *Share) fields() []any {
	return []any{&s.ID, &s.Link, &s.Session, &s.Owner, &s.Audience, &s.Title, &s.Size, (*timestamp)(&s.Created), (*timestamp)(&s.Expires)}
}

// Shares stores shares with their snapshots. Deleting a session deletes its
// shares. Expired shares are not found.
type Shares struct{ c conn }

// ShareFile is an image or a file in a share.
type ShareFile struct {
	Ref  string // hash, in hexadecimal
	Name string // path of a file, or "" for an image
	Type string // MIME type of an image, or "" for a file
	Data []byte
}

func (f *ShareFile) fields() []any { return []any{&f.Ref, &f.Name, &f.Type, &f.Data} }

// Create adds a share with its snapshot and files of up to [MaxValue] bytes each, and
// returns it as stored. It fails with [ErrExists] if the link is taken, and with
// [ErrNotFound] if the session does not exist.
func (t Shares) Create(ctx context.Context, s Share, snapshot []byte, files ...ShareFile) (Share, error) {
	s.Size = int64(len(snapshot))
	largest := len(snapshot)
	for _, f := range files {
		s.Size += int64(len(f.Data))
		largest = max(largest, len(f.Data))
	}
	if largest > MaxValue {
		return Share{}, fmt.Errorf("store share: %w: a part has %d bytes, limit %d", ErrInvalid, largest, MaxValue)
	}
	setDefaultID(&s.ID)
	setDefaultTime(&s.Created)
	s.Expires = fromMillis(toMillis(s.Expires))
	err := t.c.inTransaction(ctx, func(c conn) error {
		if err := c.insert(ctx, "shares", shareColumns, s.fields()); err != nil {
			return toNotFound(err)
		}
		for _, f := range files {
			if f.Data == nil {
				f.Data = []byte{}
			}
			if err := c.insert(ctx, "share_files", "share, ref, name, type, data", []any{s.ID, f.Ref, f.Name, f.Type, f.Data}); err != nil {
				return err
			}
		}
		return c.insert(ctx, "share_snapshots", "share, data", []any{s.ID, snapshot})
	})
	if err != nil {
		return Share{}, fmt.Errorf("store share of session %q: %w", s.Session, err)
	}
	return s, nil
}

// Get returns the share with the given id.
func (t Shares) Get(ctx context.Context, id string) (Share, error) {
	return t.get(ctx, "id", id)
}

// ByLink returns the share with the given link.
func (t Shares) ByLink(ctx context.Context, link string) (Share, error) {
	return t.get(ctx, "link", link)
}

func (t Shares) get(ctx context.Context, column, value string) (Share, error) {
	s, err := queryOne[Share](ctx, t.c, "SELECT "+shareColumns+" FROM shares WHERE "+column+" = $1 AND expires > $2", value, timestamp(now()))
	if err != nil {
		return Share{}, fmt.Errorf("get share: %w", err) // a link is secret
	}
	return s, nil
}

// Snapshot returns the snapshot of a share.
func (t Shares) Snapshot(ctx context.Context, id string) ([]byte, error) {
	data, err := queryScalar[[]byte](ctx, t.c, "SELECT data FROM share_snapshots WHERE share = $1", id)
	if err != nil {
		return nil, fmt.Errorf("read snapshot of share %q: %w", id, err)
	}
	return data, nil
}

// File returns an image or a file of a share by its ref. If several files have the same
// content, it returns one of them.
func (t Shares) File(ctx context.Context, id, ref string) (ShareFile, error) {
	f, err := queryOne[ShareFile](ctx, t.c, "SELECT ref, name, type, data FROM share_files WHERE share = $1 AND ref = $2 ORDER BY name LIMIT 1", id, ref)
	if err != nil {
		return ShareFile{}, fmt.Errorf("read file of share %q: %w", id, err)
	}
	return f, nil
}

// List returns a user's shares, or those of all users if owner is "", newest first,
// and the cursor of the next page.
func (t Shares) List(ctx context.Context, owner string, p Page) ([]Share, string, error) {
	keys, err := p.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list shares: %w", err)
	}
	where, args := "", []any{keys[0], p.Size() + 1, timestamp(now())}
	if owner != "" {
		where, args = " AND owner = $4", append(args, owner)
	}
	found, err := queryAll[Share](ctx, t.c, "SELECT "+shareColumns+` FROM shares
		WHERE expires > $3 AND ($1 = '' OR id < $1)`+where+" ORDER BY id DESC LIMIT $2", args...)
	if err != nil {
		return nil, "", fmt.Errorf("list shares: %w", err)
	}
	found, next := cutPage(p, found, func(s Share) []string { return []string{s.ID} })
	return found, next, nil
}

// Total returns the number and total size of a user's shares.
func (t Shares) Total(ctx context.Context, owner string) (Amount, error) {
	a, err := queryOne[Amount](ctx, t.c, "SELECT COUNT(*), CAST(COALESCE(SUM(size), 0) AS BIGINT) FROM shares WHERE owner = $1 AND expires > $2", owner, timestamp(now()))
	if err != nil {
		return Amount{}, fmt.Errorf("count shares of user %q: %w", owner, err)
	}
	return a, nil
}

// Delete deletes a share. It fails with [ErrNotFound] if the share does not exist.
func (t Shares) Delete(ctx context.Context, id string) error {
	if err := t.c.execAffecting(ctx, "DELETE FROM shares WHERE id = $1", id); err != nil {
		return fmt.Errorf("delete share %q: %w", id, err)
	}
	return nil
}

// today returns the number of the current day since 1970, in UTC.
func today() int64 { return now().Unix() / (24 * 60 * 60) }

// Viewed reports whether [Shares.AddView] has recorded a view of a user today.
func (t Shares) Viewed(ctx context.Context, id, viewer string) (bool, error) {
	n, err := queryScalar[int64](ctx, t.c, "SELECT count(*) FROM share_views WHERE share = $1 AND viewer = $2 AND day = $3", id, viewer, today())
	if err != nil {
		return false, fmt.Errorf("read views of share %q: %w", id, err)
	}
	return n > 0, nil
}

// AddView records that a user opened a share today. viewer is "" for someone who is
// not signed in. AddView reports whether this is the viewer's first visit today.
func (t Shares) AddView(ctx context.Context, id, viewer string) (first bool, err error) {
	n, err := t.c.exec(ctx, "INSERT INTO share_views (share, viewer, day) VALUES ($1, $2, $3) ON CONFLICT (share, viewer, day) DO NOTHING", id, viewer, today())
	if err != nil {
		return false, fmt.Errorf("record view of share %q: %w", id, toNotFound(err))
	}
	return n > 0, nil
}

// Prune deletes expired shares, and returns their number.
func (t Shares) Prune(ctx context.Context) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM shares WHERE expires <= $1", timestamp(now()))
	if err != nil {
		return 0, fmt.Errorf("delete expired shares: %w", err)
	}
	return n, nil
}
