package library

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// Kinds of notifications.
const (
	VersionAdded    = "skill.version"  // a skill that the user uses has a new version
	SourceChanged   = "skill.upstream" // the source of a skill has a newer commit
	VersionReviewed = "skill.review"   // a version was approved or rejected, or changes were requested
	SkillRemoved    = "skill.removed"  // a skill that the user uses was deleted
	CommentAdded    = "skill.comment"  // a version of the user, or a thread with a comment of the user, has a new comment
)

// NotificationDetails is the data of a [Notification].
type NotificationDetails struct {
	SkillID string `json:"skill_id"`
	Name    string `json:"name"`
	Number  int64  `json:"number,omitempty"` // number of the new or reviewed version
	From    int64  `json:"from,omitempty"`   // number of the previous version, for [Library.Diff]
	Commit  string `json:"commit,omitempty"` // newest commit of the source
	Review  Review `json:"review,omitempty"`
	Note    string `json:"note,omitempty"`   // beginning of a reviewer's note or of a comment, or the changelog line of a version
	By      string `json:"by,omitempty"`     // ID of the reviewer, or of the author of a comment
	Thread  string `json:"thread,omitempty"` // ID of the thread of a comment
}

// maxRecipients is the maximum number of recipients of a notification.
const maxRecipients = 500

// recipients is a set of user IDs.
type recipients map[string]bool

func (a recipients) add(id string) {
	if id != "" && len(a) < maxRecipients {
		a[id] = true
	}
}

// notify adds a notification for each recipient other than actor, the user who
// caused the event, which may be empty.
func (l *Library) notify(ctx context.Context, tx *store.Tx, to recipients, actor account.UserID, kind, subject string, details NotificationDetails) error {
	data, err := json.Marshal(details)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(to)) {
		if id == string(actor) {
			continue
		}
		if _, err := tx.Notifications.Add(ctx, store.Notification{UserID: id, Kind: kind, Subject: subject, Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// notifyUsers notifies the users and managers of a skill about a new version.
func (l *Library) notifyUsers(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version) error {
	to, err := l.affectedUsers(ctx, tx, h)
	if err != nil {
		return err
	}
	return l.notifyVersion(ctx, tx, to, p, h, v)
}

// notifyManagers notifies the managers of a skill about a version that is
// awaiting review.
func (l *Library) notifyManagers(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version) error {
	to := recipients{}
	if err := l.addMembers(ctx, tx, to, h.Namespace, store.Maintainer); err != nil {
		return err
	}
	return l.notifyVersion(ctx, tx, to, p, h, v)
}

func (l *Library) notifyVersion(ctx context.Context, tx *store.Tx, to recipients, p account.Principal, h *skillRecord, v store.Version) error {
	details := NotificationDetails{SkillID: h.ID, Name: h.Name, Number: v.Number, From: h.Number, Note: v.Changelog}
	return l.notify(ctx, tx, to, p.User, VersionAdded, fmt.Sprintf("%s@%d", h.ID, v.Number), details)
}

// notifyReviewed notifies a skill's managers, and the uploader of a version, that the
// version was reviewed.
func (l *Library) notifyReviewed(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, d Decision) error {
	to := recipients{}
	to.add(v.CreatedBy)
	if err := l.addMembers(ctx, tx, to, h.Namespace, store.Maintainer); err != nil {
		return err
	}
	details := NotificationDetails{SkillID: h.ID, Name: h.Name, Number: v.Number, Review: d.Review, Note: truncate(d.Note, 1024), By: string(p.User)}
	return l.notifyDecision(ctx, tx, to, "", details)
}

// notifyDecision adds notifications of a reviewer's decision about a version, which
// replace those of the reviewer's earlier decisions about it.
func (l *Library) notifyDecision(ctx context.Context, tx *store.Tx, to recipients, actor account.UserID, details NotificationDetails) error {
	subject := fmt.Sprintf("%s@%d %s", details.SkillID, details.Number, details.By)
	if err := tx.Notifications.Delete(ctx, VersionReviewed, subject); err != nil {
		return err
	}
	return l.notify(ctx, tx, to, actor, VersionReviewed, subject, details)
}

// notifyRemoved notifies a skill's users that the skill was deleted.
func (l *Library) notifyRemoved(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord) error {
	to, err := l.affectedUsers(ctx, tx, h)
	if err != nil {
		return err
	}
	return l.notify(ctx, tx, to, p.User, SkillRemoved, h.ID, NotificationDetails{SkillID: h.ID, Name: h.Name})
}

// The kinds of [NotificationDetails.Review] that are no decisions.
const (
	reviewApproval  Review = "approval"  // an approval, and more are required
	reviewDismissed Review = "dismissed" // a request for changes was dismissed
)

// notifyApproval notifies the uploader of a version of an approval, if more approvals
// are needed.
func (l *Library) notifyApproval(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, d Decision) error {
	to := recipients{}
	to.add(v.CreatedBy)
	details := NotificationDetails{SkillID: h.ID, Name: h.Name, Number: v.Number, Review: reviewApproval, Note: truncate(d.Note, 1024), By: string(p.User)}
	return l.notifyDecision(ctx, tx, to, p.User, details)
}

// notifyDismissed notifies the reviewer who requested changes, and the uploader of the
// version, that the request was dismissed.
func (l *Library) notifyDismissed(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, r store.ChangeRequest, reason string) error {
	to := recipients{}
	to.add(v.CreatedBy)
	to.add(r.Reviewer)
	details := NotificationDetails{SkillID: h.ID, Name: h.Name, Number: r.Number, Review: reviewDismissed, Note: truncate(reason, 1024), By: string(p.User)}
	return l.notify(ctx, tx, to, p.User, VersionReviewed, fmt.Sprintf("%s@%d %s %s", h.ID, r.Number, reviewDismissed, r.ID), details)
}

// notifyComment notifies the uploader of a version, and the authors of the other
// comments in a thread, of a new comment. It omits users who may no longer see it.
func (l *Library) notifyComment(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version, m store.Comment, thread []store.Comment) error {
	to := recipients{}
	to.add(v.CreatedBy)
	for _, other := range thread {
		to.add(other.Author)
	}
	for id := range to {
		user, err := activePrincipal(ctx, &tx.Tables, id)
		if err != nil {
			return err
		}
		if !h.mayComment(user, v) {
			delete(to, id)
		}
	}
	return l.notify(ctx, tx, to, p.User, CommentAdded, commentSubject(h, v, m), newCommentNotification(h, v, m))
}

func newCommentNotification(h *skillRecord, v store.Version, m store.Comment) NotificationDetails {
	return NotificationDetails{SkillID: h.ID, Name: h.Name, Number: v.Number, Note: truncate(m.Text, 1024), By: m.Author, Thread: m.Thread}
}

func commentSubject(h *skillRecord, v store.Version, m store.Comment) string {
	return commentSubjects(h.ID, v.Number) + m.ID
}

// commentSubjects returns the prefix of the subjects of notifications that quote comments
// on a version.
func commentSubjects(skillID string, number int64) string {
	return fmt.Sprintf("%s@%d ", skillID, number)
}

// updateCommentNotifications changes the notifications of a comment, which quote it.
func updateCommentNotifications(ctx context.Context, tx *store.Tx, h *skillRecord, v store.Version, m store.Comment) error {
	data, err := json.Marshal(newCommentNotification(h, v, m))
	if err != nil {
		return err
	}
	return tx.Notifications.SetData(ctx, CommentAdded, commentSubject(h, v, m), data)
}

// affectedUsers returns the managers of a skill and the users who have it as a
// default or through a resource.
func (l *Library) affectedUsers(ctx context.Context, tx *store.Tx, h *skillRecord) (recipients, error) {
	to := recipients{}
	if err := l.addMembers(ctx, tx, to, h.Namespace, store.Maintainer); err != nil {
		return nil, err
	}
	refs, err := l.loadReferences(ctx, &tx.Tables, account.Principal{}, h)
	if err != nil {
		return nil, err
	}
	for _, r := range refs.all {
		least := store.Maintainer
		switch r.Kind {
		case ListingReference:
			continue
		case DefaultReference:
			least = store.Reporter
		}
		if err := l.addMembers(ctx, tx, to, r.Namespace, least); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// ranks lists the group roles, lowest first.
var ranks = []store.Role{store.Reporter, store.Developer, store.Maintainer, store.Owner}

// addMembers adds the user who owns a namespace, or the group members whose
// role is at least minRole. It reads up to maxRecipients members.
func (l *Library) addMembers(ctx context.Context, tx *store.Tx, to recipients, n Namespace, minRole store.Role) error {
	to.add(n.User())
	if n.Group() == "" {
		return nil
	}
	members, _, err := tx.Groups.Members(ctx, n.Group(), store.Page{Limit: maxRecipients})
	for _, m := range members {
		if slices.Index(ranks, m.Role) >= slices.Index(ranks, minRole) {
			to.add(m.UserID)
		}
	}
	return err
}

// Notification informs a user about an event.
type Notification struct {
	store.Notification
	Details NotificationDetails // empty if another package created the notification
}

// Notifications returns the principal's notifications about a skill, newest
// first, and the cursor of the next page. If skill is "", it returns those about
// all skills. If unseen is set, it omits notifications that were already seen.
func (l *Library) Notifications(ctx context.Context, p account.Principal, skill string, unseen bool, page store.Page) ([]Notification, string, error) {
	if err := account.Check(p, account.NotificationRead, account.OwnedBy(p.User)); err != nil {
		return nil, "", err
	}
	rows, next, err := l.db.Notifications.List(ctx, store.NotificationQuery{UserID: string(p.User), SubjectPrefix: skill, Unseen: unseen, Page: page})
	if err != nil {
		return nil, "", err
	}
	out := make([]Notification, len(rows))
	for i, n := range rows {
		out[i].Notification = n
		_ = json.Unmarshal(n.Data, &out[i].Details)
	}
	return out, next, nil
}

// MarkNotificationSeen marks a notification as seen by the principal.
func (l *Library) MarkNotificationSeen(ctx context.Context, p account.Principal, id string) error {
	if err := account.Check(p, account.NotificationRead, account.OwnedBy(p.User)); err != nil {
		return err
	}
	return l.db.Notifications.MarkSeen(ctx, string(p.User), id)
}
