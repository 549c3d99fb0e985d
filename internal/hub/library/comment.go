package library

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/hub/account"
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
}

func newComment(m store.Comment) Comment {
	return Comment{ID: m.ID, Author: m.Author, Text: untrusted.New(m.Text).ForPage(), Created: m.Created, Edited: m.Edited}
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

// Comments returns the threads of a version, oldest first, followed by the open
// threads of those earlier versions that the principal may access. Number 0 means the current version. Like writing
// comments, it requires [account.SkillComment] and access to the version, but only
// scopes for reading.
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
	if earlier, err = l.accessibleComments(ctx, p, h, earlier); err != nil {
		return nil, err
	}
	slices.Reverse(earlier)
	threads := groupComments(append(own, earlier...))
	return threads, l.relocateThreads(ctx, h, v, threads)
}

// accessibleComments returns those of the comments whose versions the principal may
// access. It changes all.
func (l *Library) accessibleComments(ctx context.Context, p account.Principal, h *skillRecord, all []store.Comment) ([]store.Comment, error) {
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
	}
	return slices.DeleteFunc(all, func(m store.Comment) bool { return withheld[m.Number] }), nil
}

// groupComments groups comments, of which those of a thread are in order. It omits
// threads without their first comment.
func groupComments(all []store.Comment) []CommentThread {
	out, where := []CommentThread{}, map[string]int{}
	for _, m := range all {
		if m.ID == m.Thread {
			where[m.ID] = len(out)
			t := CommentThread{ID: m.ID, Version: m.Number, Path: m.Path, Side: "new", Base: m.Base, Line: m.Line, Text: untrusted.New(m.LineText).ForPage(), ResolvedBy: m.ResolvedBy, Resolved: m.Resolved, Comments: []Comment{}}
			if m.Base != 0 {
				t.Side = "old"
			}
			out = append(out, t)
		}
		if i, ok := where[m.Thread]; ok {
			out[i].Comments = append(out[i].Comments, newComment(m))
		}
	}
	return out
}

// AddComment adds a comment or a reply to a version, and returns its thread and its
// ID. It notifies the uploader of the version and the authors of the thread. Number 0
// means the current version. AddComment returns [ErrConflict] if the version has
// another digest, and [ErrTooMany] if it has [store.MaxComments].
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
	var all []store.Comment
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
		stored, err := tx.Comments.Add(ctx, m)
		if err != nil {
			return d, err
		}
		comment = stored.ID
		if all, err = tx.Comments.ListThread(ctx, stored.Thread); err != nil {
			return d, err
		}
		return newCommentDetails(h, v, stored, "added"), l.notifyComment(ctx, tx, p, h, v, stored, all)
	})
	if err != nil {
		return nil, "", err
	}
	return &groupComments(all)[0], comment, nil
}

// cleanComment returns the text of a comment without surrounding white space.
func cleanComment(text string) (string, error) {
	text = strings.TrimSpace(text)
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
}

func newCommentDetails(h *skillRecord, v store.Version, m store.Comment, change string) commentDetails {
	return commentDetails{h.Name, v.Number, m.ID, m.Path, m.Line, change}
}

// changeComment calls f to change a comment, and returns its thread. The comment
// must be the principal's own if own is set.
func (l *Library) changeComment(ctx context.Context, p account.Principal, id, comment, change string, own bool, f func(*store.Tx, store.Comment) error) (*CommentThread, error) {
	var all []store.Comment
	m, err := l.db.Comments.Get(ctx, comment)
	if err == nil && m.SkillID != id {
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
	err = l.updateComment(ctx, p, id, m.Number, func(tx *store.Tx, h *skillRecord, v store.Version) (commentDetails, error) {
		if own && m.Author != string(p.User) {
			return commentDetails{}, &account.DeniedError{Action: account.SkillComment}
		}
		if err := f(tx, m); err != nil {
			return commentDetails{}, err
		}
		var err error
		all, err = tx.Comments.ListThread(ctx, m.Thread)
		return newCommentDetails(h, v, m, change), err
	})
	if err != nil || len(all) == 0 {
		return nil, err
	}
	return &groupComments(all)[0], nil
}

// EditComment replaces the text of the principal's own comment, and returns its
// thread.
func (l *Library) EditComment(ctx context.Context, p account.Principal, id, comment, text string) (*CommentThread, error) {
	text, err := cleanComment(text)
	if err != nil {
		return nil, err
	}
	return l.changeComment(ctx, p, id, comment, "edited", true, func(tx *store.Tx, m store.Comment) error {
		if m.Text == "" {
			return fmt.Errorf("comment %.80q: %w", comment, ErrNotFound)
		}
		return tx.Comments.SetText(ctx, comment, text)
	})
}

// DeleteComment deletes the principal's own comment. If it has replies, only its text
// is deleted.
func (l *Library) DeleteComment(ctx context.Context, p account.Principal, id, comment string) error {
	_, err := l.changeComment(ctx, p, id, comment, "deleted", true, func(tx *store.Tx, m store.Comment) error {
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
	return l.changeComment(ctx, p, id, thread, change, false, func(tx *store.Tx, m store.Comment) error {
		return tx.Comments.SetResolved(ctx, thread, by)
	})
}
