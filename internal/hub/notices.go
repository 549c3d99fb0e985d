package hub

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// noticeJSON tells a user of something, once.
type noticeJSON struct {
	ID      string     `json:"id"`
	Kind    string     `json:"kind" doc:"skill.version, skill.upstream, skill.review or skill.removed"`
	Created time.Time  `json:"created"`
	Seen    *time.Time `json:"seen,omitempty" doc:"Not there where you have not seen it"`
	SkillID string     `json:"skill_id,omitempty" doc:"Of the skill that it is about"`
	Name    string     `json:"name,omitempty" doc:"Of the skill"`
	Number  int64      `json:"number,omitempty" doc:"The new version, or the reviewed one"`
	From    int64      `json:"from,omitempty" doc:"The version that was current: the two are what a diff is asked of"`
	Commit  string     `json:"commit,omitempty" doc:"What the place of an imported skill has now: see its upgrade"`
	Review  string     `json:"review,omitempty" doc:"What was decided"`
	Note    string     `json:"note,omitempty" doc:"Of the reviewer"`
}

func noticeOf(n library.Notice) noticeJSON {
	return noticeJSON{
		ID: n.ID, Kind: n.Kind, Created: n.Created, Seen: when(n.Seen), SkillID: n.News.SkillID, Name: n.News.Name, Number: n.News.Number,
		From: n.News.From, Commit: n.News.Commit, Review: string(n.News.Review), Note: n.News.Note,
	}
}

func (h *Hub) noticesAPI(api huma.API) {
	add(h, api, operation("list-notices", "GET", "/notices", "What you are told, the newest first"), h.listNotices)
	add(h, api, operation("see-notice", "POST", "/notices/{notice}/seen", "Note that you have seen a notice"), h.seeNotice)
}

func (h *Hub) listNotices(ctx context.Context, in *struct {
	Paging
	Skill  string `query:"skill" maxLength:"64" doc:"The id of a skill: only what is about it"`
	Unseen bool   `query:"unseen" doc:"Only what you have not seen"`
}) (*body[listed[noticeJSON]], error) {
	notices, next, err := h.library.Notices(ctx, account.FromContext(ctx), in.Skill, in.Unseen, in.page())
	return page(notices, next, err, noticeOf)
}

func (h *Hub) seeNotice(ctx context.Context, in *struct {
	Notice string `path:"notice" maxLength:"64" doc:"The id of a notice"`
}) (*nothing, error) {
	return nil, h.library.See(ctx, account.FromContext(ctx), in.Notice)
}
