package library

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// maxCommentLength is the maximum length of a comment, in characters.
const maxCommentLength = 4000

// CommentThread is a comment on a version with its replies.
type CommentThread struct {
	ID      string `json:"id" doc:"ID of its first comment"`
	Version int64  `json:"version" doc:"Number of the version that it is about; an earlier one if the thread is still open"`
	Path    string `json:"path,omitempty" doc:"Path of the file; absent for the whole version"`
	Side    string `json:"side" enum:"new,old" doc:"old: the line is one of the version in base"`
	Base    int64  `json:"base,omitempty" doc:"Number of the version that has the line, if another one"`
	Line    int64  `json:"line,omitempty" doc:"Line in the listed version, from 1; absent for the whole file, or if outdated"`
	Text    string `json:"text,omitempty" doc:"Text of the line"`
	// Outdated is only set in threads of earlier versions.
	Outdated   bool      `json:"outdated" doc:"Whether the listed version no longer has the line"`
	ResolvedBy string    `json:"resolvedBy,omitempty" doc:"ID of the user who resolved it; absent if open"`
	Resolved   time.Time `json:"resolved,omitzero"`
	Comments   []Comment `json:"comments" nullable:"false" doc:"Oldest first"`
}

// Comment is a comment in a [CommentThread].
type Comment struct {
	ID      string    `json:"id"`
	Author  string    `json:"author" doc:"ID of the user"`
	Text    string    `json:"text" doc:"Markdown; empty if it was deleted"`
	Created time.Time `json:"created"`
	Edited  time.Time `json:"edited,omitzero"`
	Delete  bool      `json:"canDelete" doc:"Whether you may delete it"`
}

func newComment(m store.Comment, mayDelete bool) Comment {
	return Comment{m.ID, m.Author, untrusted.New(m.Text).ForPage(), m.Created, m.Edited, mayDelete}
}

// NewComment describes a comment to add. A reply has the location of its thread.
type NewComment struct {
	Digest string // of the version that the user saw; "" for any
	Thread string // thread to reply to, or "" to start one
	Path   string // "" for the whole version
	Base   int64  // number of the version that has the line; 0 for the version itself
	Line   int64  // from 1; 0 for the whole file
	Text   string // Markdown
}

// mayComment reports whether the user may see and write comments on a version. It
// ignores the scopes of the principal's token.
func (h *skillRecord) mayComment(p account.Principal, v store.Version) bool {
	p.Scopes = account.AllScopes
	return h.check(p, account.SkillComment, h.CreatedBy) == nil && h.checkVersion(p, v) == nil
}

// isReviewer reports whether the principal may review a version. It ignores the scopes
// of the principal's token.
func (h *skillRecord) isReviewer(p account.Principal, v store.Version) bool {
	p.Scopes = account.AllScopes
	return h.check(p, account.SkillReview, v.CreatedBy) == nil
}

// mayDelete reports whether the principal may delete a comment on a version. Authors
// may delete their own comments; reviewers with a scope for reviews may delete any.
func (h *skillRecord) mayDelete(p account.Principal, v store.Version, m store.Comment) bool {
	return m.Text != "" && (m.Author == string(p.User) || h.check(p, account.SkillReview, v.CreatedBy) == nil)
}

// Comments returns the threads of a version, oldest first, followed by the open
// threads of those earlier versions that the principal may access. Number 0 means
// the current version. Like writing comments, it requires [account.SkillComment]
// and access to the version, but only scopes for reading.
func (l *Library) Comments(ctx context.Context, p account.Principal, id string, number int64) ([]CommentThread, error) {
	h, v, err := l.getReadableVersion(ctx, p, account.SkillRead, id, number)
	if err != nil {
		return nil, err
	}
	if !h.mayComment(p, v) {
		return nil, &account.DeniedError{Action: account.SkillComment}
	}
	own, err := l.db.Comments.List(ctx, v.ID)
	if err != nil {
		return nil, err
	}
	earlier, err := l.db.Comments.ListOpen(ctx, id, v.Number)
	if err != nil {
		return nil, err
	}
	versions := map[int64]store.Version{v.Number: v}
	if earlier, err = l.accessibleComments(ctx, p, h, earlier, versions); err != nil {
		return nil, err
	}
	threads := groupComments(append(own, earlier...), func(m store.Comment) bool { return h.mayDelete(p, versions[m.Number], m) })
	return threads, l.relocateThreads(ctx, h, v, threads)
}

// accessibleComments returns the comments whose versions the principal may access,
// and adds these versions to found. It modifies the slice all.
func (l *Library) accessibleComments(ctx context.Context, p account.Principal, h *skillRecord, all []store.Comment, found map[int64]store.Version) ([]store.Comment, error) {
	withheld := map[int64]bool{}
	for _, m := range all {
		if _, ok := withheld[m.Number]; ok {
			continue
		}
		v, err := l.db.Versions.Get(ctx, h.ID, m.Number)
		if err != nil && !isNotFound(err) {
			return nil, err
		}
		withheld[m.Number] = err != nil || h.checkVersion(p, v) != nil
		found[m.Number] = v
	}
	return slices.DeleteFunc(all, func(m store.Comment) bool { return withheld[m.Number] }), nil
}

// groupComments groups comments by their threads. It needs the first comment of each
// thread, at any position.
func groupComments(all []store.Comment, mayDelete func(store.Comment) bool) []CommentThread {
	out, where := []CommentThread{}, map[string]int{}
	for _, m := range all {
		if m.ID != m.Thread {
			continue
		}
		where[m.ID] = len(out)
		t := CommentThread{ID: m.ID, Version: m.Number, Path: m.Path, Side: "new", Base: m.Base, Line: m.Line, Text: untrusted.New(m.LineText).ForPage(), ResolvedBy: m.ResolvedBy, Resolved: m.Resolved, Comments: []Comment{newComment(m, mayDelete(m))}}
		if m.Base != 0 {
			t.Side = "old"
		}
		out = append(out, t)
	}
	for _, m := range all {
		if i, ok := where[m.Thread]; ok && m.ID != m.Thread {
			out[i].Comments = append(out[i].Comments, newComment(m, mayDelete(m)))
		}
	}
	return out
}

// AddComment adds a comment or a reply to a version, and returns its thread and its
// ID. It notifies the uploader of the version and the authors of the thread. Number 0
// means the current version. AddComment returns [ErrConflict] if the version has
// another digest, and [ErrTooManyComments] if it has too many.
func (l *Library) AddComment(ctx context.Context, p account.Principal, id string, number int64, c NewComment) (thread *CommentThread, comment string, err error) {
	if c.Text, err = cleanComment(c.Text); err != nil {
		return nil, "", err
	}
	h, v, err := l.authorizeComment(ctx, p, id, number)
	if err != nil {
		return nil, "", err
	}
	m := store.Comment{SkillID: id, VersionID: v.ID, Thread: c.Thread, Path: c.Path, Base: c.Base, Line: c.Line, Author: string(p.User), Text: c.Text}
	if c.Thread == "" {
		if m.LineText, err = l.commentedLine(ctx, p, h, v, c); err != nil {
			return nil, "", err
		}
	}
	var all []CommentThread
	err = l.updateComment(ctx, p, id, v.Number, func(tx *store.Tx, h *skillRecord, v store.Version) (d commentDetails, err error) {
		if c.Digest != "" && c.Digest != v.Digest {
			return d, fmt.Errorf("%w: version %d has another digest", ErrConflict, v.Number)
		}
		if c.Thread != "" {
			first, err := tx.Comments.Get(ctx, c.Thread)
			if err != nil {
				return d, err
			}
			m.Path, m.Base, m.Line, m.LineText = first.Path, first.Base, first.Line, first.LineText
		}
		if err := l.checkCommentLimits(ctx, tx, p, h, v, m); err != nil {
			return d, err
		}
		stored, err := tx.Comments.Add(ctx, m)
		if err != nil {
			return d, err
		}
		comment = stored.ID
		thread, err := tx.Comments.ListThread(ctx, stored.Thread)
		if err != nil {
			return d, err
		}
		all = groupComments(thread, func(m store.Comment) bool { return h.mayDelete(p, v, m) })
		return newCommentDetails(h, v, stored, "added"), l.notifyComment(ctx, tx, p, h, v, stored, thread)
	})
	if err != nil {
		return nil, "", err
	}
	return &all[0], comment, nil
}

// Limits of the comments on a version for users who are no reviewers of it. Beyond
// maxCommentsOfAll comments of any users, the version has room for reviewers only.
const (
	maxCommentsOfUser = 100
	maxCommentsOfAll  = store.MaxComments - 100
)

// checkCommentLimits returns an error if the principal must not add a comment, because
// the version has too many or the namespace has no space.
func (l *Library) checkCommentLimits(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, m store.Comment) error {
	all, own, err := tx.Comments.CountBy(ctx, v.ID, string(p.User))
	if err != nil {
		return err
	}
	most := int64(maxCommentsOfAll)
	if h.isReviewer(p, v) {
		most = store.MaxComments
	} else if own >= maxCommentsOfUser {
		return fmt.Errorf("%w of yours on version %d (%d, limit %d)", ErrTooManyComments, v.Number, own, maxCommentsOfUser)
	}
	if all >= most {
		return fmt.Errorf("%w on version %d (%d, limit %d)", ErrTooManyComments, v.Number, all, most)
	}
	return l.opts.Quotas.Check(ctx, &tx.Tables, h.Namespace, quota.Amounts{Bytes: int64(len(m.Text) + len(m.LineText))})
}

// cleanComment returns the text of a comment without hidden characters and surrounding
// white space.
func cleanComment(text string) (string, error) {
	text = strings.TrimSpace(untrusted.New(text).ForPage())
	if n := utf8.RuneCountInString(text); n == 0 {
		return "", invalidf("comment is empty")
	} else if n > maxCommentLength {
		return "", invalidf("comment too long (%d characters, limit %d)", n, maxCommentLength)
	}
	return text, nil
}

// authorizeComment returns a skill and a version on which the principal may comment.
func (l *Library) authorizeComment(ctx context.Context, p account.Principal, id string, number int64) (*skillRecord, store.Version, error) {
	h, err := l.getSkill(ctx, &l.db.Tables, id)
	if err != nil {
		return nil, store.Version{}, err
	}
	if err := h.check(p, account.SkillComment, h.CreatedBy); err != nil {
		return nil, store.Version{}, l.recordDenied(ctx, p, account.SkillComment, h.Namespace, id, err)
	}
	v, err := l.getVersion(ctx, h, number)
	if err == nil {
		err = h.checkVersion(p, v)
	}
	return h, v, err
}

// updateComment calls f to change the comments on a version.
func (l *Library) updateComment(ctx context.Context, p account.Principal, id string, number int64, f func(*store.Tx, *skillRecord, store.Version) (commentDetails, error)) error {
	return l.update(ctx, p, account.SkillComment, id, func(tx *store.Tx, h *skillRecord) (any, error) {
		v, err := tx.Versions.Get(ctx, id, number)
		if err == nil {
			err = h.checkVersion(p, v)
		}
		if err != nil {
			return nil, err
		}
		return f(tx, h, v)
	})
}

// commentDetails holds the details of the audit record for a change of a comment.
type commentDetails struct {
	Name    string `json:"name"`
	Version int64  `json:"version"`
	Comment string `json:"comment"` // ID
	Path    string `json:"path,omitempty"`
	Line    int64  `json:"line,omitempty"`
	Change  string `json:"change"` // added, edited, deleted, resolved or reopened
	Author  string `json:"author"` // ID of the author of the comment
}

func newCommentDetails(h *skillRecord, v store.Version, m store.Comment, change string) commentDetails {
	return commentDetails{h.Name, v.Number, m.ID, m.Path, m.Line, change, m.Author}
}

type changeFunc func(*store.Tx, *skillRecord, store.Version, store.Comment) error

// changeComment calls f to change a comment, and returns its thread, or nil if the
// thread no longer exists.
func (l *Library) changeComment(ctx context.Context, p account.Principal, id, comment, change string, f changeFunc) (*CommentThread, error) {
	found, err := l.db.Comments.Get(ctx, comment)
	if err == nil && found.SkillID != id {
		err = fmt.Errorf("comment %.80q: %w", comment, ErrNotFound)
	}
	if isNotFound(err) { // do not reveal which comments exist
		if _, _, err := l.authorizeComment(ctx, p, id, 0); err != nil {
			return nil, err
		}
	}
	if err != nil {
		return nil, err
	}
	var all []CommentThread
	err = l.updateComment(ctx, p, id, found.Number, func(tx *store.Tx, h *skillRecord, v store.Version) (d commentDetails, err error) {
		m, err := tx.Comments.Get(ctx, comment) // it may have changed
		if err != nil {
			return d, err
		}
		if err := f(tx, h, v, m); err != nil {
			return d, err
		}
		thread, err := tx.Comments.ListThread(ctx, m.Thread)
		all = groupComments(thread, func(m store.Comment) bool { return h.mayDelete(p, v, m) })
		return newCommentDetails(h, v, m, change), err
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &all[0], nil
}

// EditComment replaces the text of the principal's own comment, also in notifications,
// and returns its thread.
func (l *Library) EditComment(ctx context.Context, p account.Principal, id, comment, text string) (*CommentThread, error) {
	text, err := cleanComment(text)
	if err != nil {
		return nil, err
	}
	return l.changeComment(ctx, p, id, comment, "edited", func(tx *store.Tx, h *skillRecord, v store.Version, m store.Comment) error {
		if m.Author != string(p.User) {
			return &account.DeniedError{Action: account.SkillComment}
		}
		if m.Text == "" {
			return fmt.Errorf("comment %.80q: %w", comment, ErrNotFound)
		}
		if err := l.opts.Quotas.Check(ctx, &tx.Tables, h.Namespace, quota.Amounts{Bytes: int64(len(text) - len(m.Text))}); err != nil {
			return err
		}
		if err := tx.Comments.SetText(ctx, comment, text); err != nil {
			return err
		}
		m.Text = text
		return updateCommentNotifications(ctx, tx, h, v, m)
	})
}

// DeleteComment deletes the principal's own comment, or as a reviewer any comment, and
// the notifications that quote it. If the comment has replies, only its text is deleted.
func (l *Library) DeleteComment(ctx context.Context, p account.Principal, id, comment string) error {
	_, err := l.changeComment(ctx, p, id, comment, "deleted", func(tx *store.Tx, h *skillRecord, v store.Version, m store.Comment) error {
		if m.Text == "" {
			return fmt.Errorf("comment %.80q: %w", comment, ErrNotFound)
		}
		if !h.mayDelete(p, v, m) {
			return &account.DeniedError{Action: account.SkillComment}
		}
		if err := tx.Notifications.Delete(ctx, CommentAdded, commentSubject(h, v, m)); err != nil {
			return err
		}
		return tx.Comments.Delete(ctx, comment)
	})
	return err
}

// ResolveThread resolves a thread or reopens it, and returns it. thread is the ID of its
// first comment.
func (l *Library) ResolveThread(ctx context.Context, p account.Principal, id, thread string, resolved bool) (*CommentThread, error) {
	change, by := "reopened", ""
	if resolved {
		change, by = "resolved", string(p.User)
	}
	return l.changeComment(ctx, p, id, thread, change, func(tx *store.Tx, _ *skillRecord, _ store.Version, _ store.Comment) error {
		return tx.Comments.SetResolved(ctx, thread, by)
	})
}
