package skillapi

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// noticeJSON is the JSON form of a notification.
type noticeJSON struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind" doc:"skill.version, skill.upstream, skill.review, skill.comment or skill.removed"`
	Created time.Time  `json:"created"`
	Seen    *time.Time `json:"seen,omitempty" doc:"Absent if unseen"`
	SkillID string     `json:"skill_id,omitempty" doc:"The skill that it is about"`
	Name    string     `json:"name,omitempty" doc:"Name of the skill"`
	Number  int64      `json:"number,omitempty" doc:"The new or reviewed version"`
	From    int64      `json:"from,omitempty" doc:"The previous current version, for a diff"`
	Commit  string     `json:"commit,omitempty" doc:"Current commit of the source of an imported skill; see its upgrade"`
	Review  string     `json:"review,omitempty" doc:"The decision; approval if more approvals are required; dismissed if an owner dismissed a request for changes"`
	Note    string     `json:"note,omitempty" doc:"Comment of the reviewer, beginning of a comment, or what the author says that changed"`
	By      string     `json:"by,omitempty" doc:"ID of the reviewer, or of the author of a comment"`
	Thread  string     `json:"thread,omitempty" doc:"Thread of a comment"`
}

func newNoticeJSON(n library.Notification) noticeJSON {
	return noticeJSON{
		ID: n.ID, Kind: n.Kind, Created: n.Created, Seen: api.OptionalTime(n.Seen), SkillID: n.Details.SkillID, Name: n.Details.Name, Number: n.Details.Number,
		From: n.Details.From, Commit: n.Details.Commit, Review: string(n.Details.Review), Note: cleanText(n.Details.Note),
		By: n.Details.By, Thread: n.Details.Thread,
	}
}

func (h *Handlers) notificationsAPI() {
	api.Add(h.Server, api.Operation("list-notices", "GET", "/notices", "List your notifications, newest first"), h.listNotifications)
	api.Add(h.Server, api.Operation("see-notice", "POST", "/notices/{notice}/seen", "Mark a notification as seen"), h.markNotificationSeen)
}

func (h *Handlers) listNotifications(ctx context.Context, in *struct {
	api.Paging
	Skill  string `query:"skill" maxLength:"64" doc:"ID of a skill: only notifications about it"`
	Unseen bool   `query:"unseen" doc:"Only unseen ones"`
}) (*api.Body[api.ListBody[noticeJSON]], error) {
	notices, next, err := h.Library.Notifications(ctx, account.FromContext(ctx), in.Skill, in.Unseen, in.Page())
	return api.PageOf(notices, next, err, newNoticeJSON)
}

func (h *Handlers) markNotificationSeen(ctx context.Context, in *struct {
	Notice string `path:"notice" maxLength:"64" doc:"ID of a notification"`
}) (*api.NoBody, error) {
	return nil, h.Library.MarkNotificationSeen(ctx, account.FromContext(ctx), in.Notice)
}
