package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Notice tells a user of something, once.
type Notice struct {
	ID      string // set by Add where it is ""
	UserID  string
	Kind    string
	Subject string // what it is about, as a skill and a version
	Data    json.RawMessage
	Created time.Time // set by Add where it is zero
	Seen    time.Time // zero is not yet
}

const noticeColumns = "id, user_id, kind, subject, data, created, seen"

func (n *Notice) fields() []any {
	return []any{&n.ID, &n.UserID, &n.Kind, &n.Subject, (*document)(&n.Data), (*stamp)(&n.Created), (*stamp)(&n.Seen)}
}

// Notices keeps what users are told.
type Notices struct{ c conn }

// Add tells a user, unless the user was told of that kind and subject before, also
// where the notice was seen; it reports whether it did.
func (t Notices) Add(ctx context.Context, n Notice) (bool, error) {
	orID(&n.ID)
	orNow(&n.Created)
	n.Seen = time.Time{}
	added, err := t.c.exec(ctx, "INSERT INTO notices ("+noticeColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (user_id, kind, subject) DO NOTHING`, n.fields()...)
	if err != nil {
		return false, fmt.Errorf("tell user %q: %w", n.UserID, parentless(err))
	}
	return added == 1, nil
}

// NoticeQuery says which notices are meant.
type NoticeQuery struct {
	UserID string
	About  string // what their subject begins with; "" is anything
	Unseen bool   // only those that the user has not seen
	Page   Page
}

// List returns notices of a user, those made last first, and how to ask for more.
func (t Notices) List(ctx context.Context, q NoticeQuery) ([]Notice, string, error) {
	keys, err := q.Page.keys(1)
	if err != nil {
		return nil, "", fmt.Errorf("notices of user %q: %w", q.UserID, err)
	}
	where := "user_id = $1 AND ($2 = '' OR id < $2) AND substr(subject, 1, $4) = $5"
	if q.Unseen {
		where += " AND seen = 0"
	}
	found, err := all[Notice](ctx, t.c, "SELECT "+noticeColumns+" FROM notices WHERE "+where+" ORDER BY id DESC LIMIT $3",
		q.UserID, keys[0], q.Page.limit()+1, utf8.RuneCountInString(q.About), q.About)
	if err != nil {
		return nil, "", fmt.Errorf("notices of user %q: %w", q.UserID, err)
	}
	found, next := cut(q.Page, found, func(n Notice) []string { return []string{n.ID} })
	return found, next, nil
}

// See notes that a user has seen a notice; that of another user is [ErrNotFound].
func (t Notices) See(ctx context.Context, userID, id string) error {
	if err := t.c.mustChange(ctx, "UPDATE notices SET seen = $3 WHERE id = $1 AND user_id = $2", id, userID, stamp(now())); err != nil {
		return fmt.Errorf("notice %q: %w", id, err)
	}
	return nil
}

// Prune forgets the notices that were seen before a time, and returns how many.
func (t Notices) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM notices WHERE seen > 0 AND seen < $1", stamp(before))
	if err != nil {
		return 0, fmt.Errorf("forget old notices: %w", err)
	}
	return n, nil
}
