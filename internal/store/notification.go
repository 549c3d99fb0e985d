package store

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
	"unicode/utf8"
)

// Notification is a message for a user, displayed until it is seen.
type Notification struct {
	ID      string // set by Add if ""
	UserID  string
	Kind    string
	Subject string // for example a skill and a version
	Data    json.RawMessage
	Created time.Time // set by Add if zero
	Seen    time.Time // zero if unseen
}

const notificationColumns = "id, user_id, kind, subject, data, created, seen"

func (n *Notification) fields() []any {
	return []any{&n.ID, &n.UserID, &n.Kind, &n.Subject, (*jsonText)(&n.Data), (*timestamp)(&n.Created), (*timestamp)(&n.Seen)}
}

// Notifications stores users' notifications.
type Notifications struct{ c conn }

// Add adds a notification unless the user already has one with the same kind
// and subject, seen or not. It reports whether it added the notification.
func (t Notifications) Add(ctx context.Context, n Notification) (bool, error) {
	setDefaultID(&n.ID)
	setDefaultTime(&n.Created)
	n.Seen = time.Time{}
	added, err := t.c.exec(ctx, "INSERT INTO notices ("+notificationColumns+`) VALUES ($1, $2, $3, $4, $5, $6, $7)
		ON CONFLICT (user_id, kind, subject) DO NOTHING`, n.fields()...)
	if err != nil {
		return false, fmt.Errorf("notify user %q: %w", n.UserID, toNotFound(err))
	}
	return added == 1, nil
}

// NotificationQuery selects a user's notifications.
type NotificationQuery struct {
	UserID        string
	Kind          string // "" for all
	SubjectPrefix string // "" for all
	Unseen        bool   // only notifications that the user has not seen
	Page          Page
}

// List returns the selected notifications, newest first, and the cursor of the
// next page.
func (t Notifications) List(ctx context.Context, q NotificationQuery) ([]Notification, string, error) {
	keys, err := q.Page.decodeCursor(1)
	if err != nil {
		return nil, "", fmt.Errorf("list notifications of user %q: %w", q.UserID, err)
	}
	where := "user_id = $1 AND ($2 = '' OR id < $2) AND substr(subject, 1, $4) = $5 AND ($6 = '' OR kind = $6)"
	if q.Unseen {
		where += " AND seen = 0"
	}
	found, err := queryAll[Notification](ctx, t.c, "SELECT "+notificationColumns+" FROM notices WHERE "+where+" ORDER BY id DESC LIMIT $3",
		q.UserID, keys[0], q.Page.Size()+1, utf8.RuneCountInString(q.SubjectPrefix), q.SubjectPrefix, q.Kind)
	if err != nil {
		return nil, "", fmt.Errorf("list notifications of user %q: %w", q.UserID, err)
	}
	found, next := cutPage(q.Page, found, func(n Notification) []string { return []string{n.ID} })
	return found, next, nil
}

// MarkSeen marks a notification as seen. It fails with [ErrNotFound] if the user
// has no such notification.
func (t Notifications) MarkSeen(ctx context.Context, userID, id string) error {
	if err := t.c.execAffecting(ctx, "UPDATE notices SET seen = $3 WHERE id = $1 AND user_id = $2", id, userID, timestamp(now())); err != nil {
		return fmt.Errorf("mark notification %q as seen: %w", id, err)
	}
	return nil
}

// SetData replaces the data of all users' notifications with the given kind and
// subject.
func (t Notifications) SetData(ctx context.Context, kind, subject string, data json.RawMessage) error {
	if _, err := t.c.exec(ctx, "UPDATE notices SET data = $3 WHERE kind = $1 AND subject = $2", kind, subject, jsonText(data)); err != nil {
		return fmt.Errorf("change notifications about %q: %w", subject, err)
	}
	return nil
}

// Delete deletes all users' notifications with the given kind and subject.
func (t Notifications) Delete(ctx context.Context, kind, subject string) error {
	if _, err := t.c.exec(ctx, "DELETE FROM notices WHERE kind = $1 AND subject = $2", kind, subject); err != nil {
		return fmt.Errorf("delete notifications about %q: %w", subject, err)
	}
	return nil
}

// DeletePrefix deletes all users' notifications with the given kind whose subject has the
// prefix, which must end with an ASCII character.
func (t Notifications) DeletePrefix(ctx context.Context, kind, prefix string) error {
	last := len(prefix) - 1
	after := prefix[:last] + string(rune(prefix[last]+1))
	if _, err := t.c.exec(ctx, "DELETE FROM notices WHERE kind = $1 AND subject >= $2 AND subject < $3", kind, prefix, after); err != nil {
		return fmt.Errorf("delete notifications about %q: %w", prefix, err)
	}
	return nil
}

// Prune deletes notifications seen before the given time and returns their
// number.
func (t Notifications) Prune(ctx context.Context, before time.Time) (int64, error) {
	n, err := t.c.exec(ctx, "DELETE FROM notices WHERE seen > 0 AND seen < $1", timestamp(before))
	if err != nil {
		return 0, fmt.Errorf("delete old notifications: %w", err)
	}
	return n, nil
}
