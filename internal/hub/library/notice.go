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

// Kinds of notices that a library gives.
const (
	VersionAdded    = "skill.version"  // a skill that is used has another version
	SourceChanged   = "skill.upstream" // the place that a skill is from has a newer state
	VersionReviewed = "skill.review"   // a version was approved or rejected
	SkillRemoved    = "skill.removed"  // a skill that is used was deleted
)

// NotificationDetails is the data of a notice.
type NotificationDetails struct {
	SkillID string `json:"skill_id"`
	Name    string `json:"name"`
	Number  int64  `json:"number,omitempty"` // the new version, or the reviewed one
	From    int64  `json:"from,omitempty"`   // the version that was current: with Number what [Library.Diff] takes
	Commit  string `json:"commit,omitempty"` // of the place
	Review  Review `json:"review,omitempty"`
	Note    string `json:"note,omitempty"`
}

// maxRecipients bounds who is told of one thing.
const maxRecipients = 500

// recipients are the ids of users.
type recipients map[string]bool

func (a recipients) add(id string) {
	if id != "" && len(a) < maxRecipients {
		a[id] = true
	}
}

// notify gives a notice to users, each once, whoever did it left out.
func (l *Library) notify(ctx context.Context, tx *store.Tx, to recipients, but account.UserID, kind, subject string, news NotificationDetails) error {
	data, err := json.Marshal(news)
	if err != nil {
		return err
	}
	for _, id := range slices.Sorted(maps.Keys(to)) {
		if id == string(but) {
			continue
		}
		if _, err := tx.Notifications.Add(ctx, store.Notification{UserID: id, Kind: kind, Subject: subject, Data: data}); err != nil {
			return err
		}
	}
	return nil
}

// notifyUsers tells those who have a skill, or look after it, of another version.
func (l *Library) notifyUsers(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord, v store.Version) error {
	to, err := l.affectedUsers(ctx, tx, h)
	if err != nil {
		return err
	}
	news := NotificationDetails{SkillID: h.ID, Name: h.Name, Number: v.Number, From: h.Number}
	return l.notify(ctx, tx, to, p.User, VersionAdded, fmt.Sprintf("%s@%d", h.ID, v.Number), news)
}

// notifyReviewed tells those who look after a skill what was decided.
func (l *Library) notifyReviewed(ctx context.Context, tx *store.Tx, h *skillRecord, v store.Version, d Decision) error {
	if d.Review == Pending {
		return nil
	}
	to := recipients{}
	if err := l.addMembers(ctx, tx, to, h.Namespace, store.Maintainer); err != nil {
		return err
	}
	news := NotificationDetails{SkillID: h.ID, Name: h.Name, Number: v.Number, Review: d.Review, Note: truncate(d.Note, 1024)}
	return l.notify(ctx, tx, to, "", VersionReviewed, fmt.Sprintf("%s@%d %s", h.ID, v.Number, d.Review), news)
}

// notifyRemoved tells those who have a skill that it is gone.
func (l *Library) notifyRemoved(ctx context.Context, tx *store.Tx, p account.Principal, h *skillRecord) error {
	to, err := l.affectedUsers(ctx, tx, h)
	if err != nil {
		return err
	}
	return l.notify(ctx, tx, to, p.User, SkillRemoved, h.ID, NotificationDetails{SkillID: h.ID, Name: h.Name})
}

// affectedUsers are those who look after a skill, who have it as a default, and whose kinds
// name it.
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

// ranks are the roles of a group, the least first.
var ranks = []store.Role{store.Reporter, store.Developer, store.Maintainer, store.Owner}

// addMembers adds the people of a namespace: its user, or the members of a group from a
// role on, of whom some hundred are looked at.
func (l *Library) addMembers(ctx context.Context, tx *store.Tx, to recipients, n Namespace, least store.Role) error {
	to.add(n.User())
	if n.Group() == "" {
		return nil
	}
	members, _, err := tx.Groups.Members(ctx, n.Group(), store.Page{Limit: maxRecipients})
	for _, m := range members {
		if slices.Index(ranks, m.Role) >= slices.Index(ranks, least) {
			to.add(m.UserID)
		}
	}
	return err
}

// Notification tells a user of something, once.
type Notification struct {
	store.Notification
	Details NotificationDetails // empty where the notice is of another package
}

// Notifications returns what the principal is told, of one skill or of all, the newest first, and
// how to ask for more; with unseen that alone which he has not seen.
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

// MarkNotificationSeen notes that the principal has seen a notice.
func (l *Library) MarkNotificationSeen(ctx context.Context, p account.Principal, id string) error {
	if err := account.Check(p, account.NotificationRead, account.OwnedBy(p.User)); err != nil {
		return err
	}
	return l.db.Notifications.MarkSeen(ctx, string(p.User), id)
}
