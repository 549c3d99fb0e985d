package store

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"time"
)

// MaxComments is the maximum number of comments on a version.
const MaxComments = 500

// Comment is a comment on a version of a skill. Comments with the same thread belong
// together. All comments of a thread have the same location, which is that of its first
// comment.
type Comment struct {
	ID        string // set by Add if ""
	SkillID   string
	VersionID string
	Thread    string // ID of the first comment of the thread; set by Add if ""
	Path      string // "" for the whole version
	Base      int64  // number of the version that has the line, if it is another one
	Line      int64  // from 1; 0 for the whole file
	LineText  string // text of the line
	Author    string
	Text      string // "" if the comment was deleted and has replies
	Created   time.Time
	Edited    time.Time // zero if never
	// ResolvedBy and Resolved are set only in the first comment of a thread.
	ResolvedBy string
	Resolved   time.Time // zero if the thread is open

	Number int64 // number of the version; read only
}

const commentColumns = "id, skill_id, version_id, thread, path, base, line, line_text, author, text, created, edited, resolved_by, resolved"

const commentSelect = `SELECT c.id, c.skill_id, c.version_id, c.thread, c.path, c.base, c.line, c.line_text, c.author, c.text, c.created, c.edited,
	c.resolved_by, c.resolved, v.number FROM review_comments c JOIN versions v ON v.id = c.version_id `

func (m *Comment) columns() []any {
	return []any{&m.ID, &m.SkillID, &m.VersionID, &m.Thread, &m.Path, &m.Base, &m.Line, &m.LineText, &m.Author, &m.Text,
		(*timestamp)(&m.Created), (*timestamp)(&m.Edited), &m.ResolvedBy, (*timestamp)(&m.Resolved)}
}

func (m *Comment) fields() []any { return append(m.columns(), &m.Number) }

// Comments stores comments on versions of skills. Deleting a version deletes its
// comments.
type Comments struct{ c conn }

// Add adds a comment and returns it as stored. It fails with [ErrTooMany] if the
// version already has [MaxComments], and with [ErrNotFound] if the version or, for a
// reply, the thread does not exist.
func (t Comments) Add(ctx context.Context, m Comment) (Comment, error) {
	setDefaultID(&m.ID)
	m.Created, m.Edited, m.ResolvedBy, m.Resolved = fromMillis(toMillis(now())), time.Time{}, "", time.Time{}
	err := t.c.inTransaction(ctx, func(c conn) error {
		n, err := queryScalar[int64](ctx, c, "SELECT count(*) FROM review_comments WHERE version_id = $1", m.VersionID)
		if err != nil {
			return err
		}
		if n >= MaxComments {
			return fmt.Errorf("%w comments on the version (limit %d)", ErrTooMany, MaxComments)
		}
		if m.Thread == "" {
			m.Thread = m.ID
		} else if err := c.requireRow(ctx, "SELECT 1 FROM review_comments WHERE id = $1 AND thread = $1 AND version_id = $2", m.Thread, m.VersionID); err != nil {
			return err
		}
		return toNotFound(c.insert(ctx, "review_comments", commentColumns, m.columns()))
	})
	if err != nil {
		return Comment{}, fmt.Errorf("add comment: %w", err)
	}
	return m, nil
}

// Get returns the comment with the given id.
func (t Comments) Get(ctx context.Context, id string) (Comment, error) {
	m, err := queryOne[Comment](ctx, t.c, commentSelect+"WHERE c.id = $1", id)
	if err != nil {
		return Comment{}, fmt.Errorf("get comment %q: %w", id, err)
	}
	return m, nil
}

// CountBy returns the number of comments on a version, and how many of them are by an
// author.
func (t Comments) CountBy(ctx context.Context, versionID, author string) (all, own int64, err error) {
	err = t.c.query(ctx, false, func(r *sql.Rows) error { return r.Scan(&all, &own) },
		"SELECT count(*), COALESCE(sum(CASE WHEN author = $2 THEN 1 ELSE 0 END), 0) FROM review_comments WHERE version_id = $1", versionID, author)
	if err != nil {
		return 0, 0, fmt.Errorf("count comments on version %q: %w", versionID, err)
	}
	return all, own, nil
}

// List returns the comments on a version, each thread with its first comment first.
// Otherwise the order is that of their IDs, which is not exactly that of their times if
// the clocks of nodes differ.
func (t Comments) List(ctx context.Context, versionID string) ([]Comment, error) {
	found, err := queryAll[Comment](ctx, t.c, commentSelect+"WHERE c.version_id = $1 ORDER BY c.thread, c.id <> c.thread, c.id LIMIT $2", versionID, MaxComments)
	if err != nil {
		return nil, fmt.Errorf("list comments on version %q: %w", versionID, err)
	}
	return found, nil
}

// openThreads selects the first comments of the newest open threads on versions of a
// skill with numbers less than $2.
const openThreads = `SELECT f.id FROM review_comments f JOIN versions w ON w.id = f.version_id
	WHERE f.skill_id = $1 AND w.number < $2 AND f.id = f.thread AND f.resolved = 0 ORDER BY f.id DESC LIMIT $3`

// ListOpen returns the open threads on versions of a skill with numbers less than end,
// in the order of [Comments.List]. It returns the newest [MaxComments] threads, and
// their newest MaxComments replies.
func (t Comments) ListOpen(ctx context.Context, skillID string, end int64) ([]Comment, error) {
	var all []Comment
	for _, where := range []string{"c.id IN (", "c.id <> c.thread AND c.thread IN ("} {
		found, err := queryAll[Comment](ctx, t.c, commentSelect+"WHERE "+where+openThreads+") ORDER BY c.id DESC LIMIT $3", skillID, end, MaxComments)
		if err != nil {
			return nil, fmt.Errorf("list open comments on skill %q: %w", skillID, err)
		}
		all = append(all, found...)
	}
	slices.SortFunc(all, func(a, b Comment) int {
		return cmp.Or(cmp.Compare(a.Thread, b.Thread), cmp.Compare(a.replyRank(), b.replyRank()), cmp.Compare(a.ID, b.ID))
	})
	return all, nil
}

// replyRank returns 0 for the first comment of a thread, and 1 for its replies.
func (m *Comment) replyRank() int {
	if m.ID == m.Thread {
		return 0
	}
	return 1
}

// ListThread returns the comments of a thread in the order of [Comments.List].
func (t Comments) ListThread(ctx context.Context, thread string) ([]Comment, error) {
	found, err := queryAll[Comment](ctx, t.c, commentSelect+"WHERE c.thread = $1 ORDER BY c.id <> c.thread, c.id LIMIT $2", thread, MaxComments)
	if err != nil {
		return nil, fmt.Errorf("list comments of thread %q: %w", thread, err)
	}
	return found, nil
}

// SetText replaces the text of a comment.
func (t Comments) SetText(ctx context.Context, id, text string) error {
	if err := t.c.execAffecting(ctx, "UPDATE review_comments SET text = $2, edited = $3 WHERE id = $1", id, text, timestamp(now())); err != nil {
		return fmt.Errorf("change comment %q: %w", id, err)
	}
	return nil
}

// SetResolved records who resolved a thread, or reopens it if user is "". id is that of
// the first comment.
func (t Comments) SetResolved(ctx context.Context, id, user string) error {
	var at time.Time
	if user != "" {
		at = now()
	}
	if err := t.c.execAffecting(ctx, "UPDATE review_comments SET resolved_by = $2, resolved = $3 WHERE id = $1 AND thread = id", id, user, timestamp(at)); err != nil {
		return fmt.Errorf("resolve comment %q: %w", id, err)
	}
	return nil
}

// Delete deletes a comment. The first comment of a thread with replies remains without
// text until the last reply is deleted.
func (t Comments) Delete(ctx context.Context, id string) error {
	err := t.c.inTransaction(ctx, func(c conn) error {
		thread, err := queryScalar[string](ctx, c, "SELECT thread FROM review_comments WHERE id = $1", id)
		if err != nil {
			return err
		}
		if thread == id {
			_, err = c.exec(ctx, "UPDATE review_comments SET text = '' WHERE id = $1", id)
		} else {
			_, err = c.exec(ctx, "DELETE FROM review_comments WHERE id = $1", id)
		}
		if err != nil {
			return err
		}
		_, err = c.exec(ctx, `DELETE FROM review_comments WHERE id = $1 AND text = ''
			AND NOT EXISTS (SELECT 1 FROM review_comments r WHERE r.thread = $1 AND r.id <> $1)`, thread)
		return err
	})
	if err != nil {
		return fmt.Errorf("delete comment %q: %w", id, err)
	}
	return nil
}
