package hub

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// UseJSON is how much a skill was used.
type UseJSON struct {
	Loads  int64 `json:"loads"`
	Calls  int64 `json:"calls" doc:"Of its tools and scripts"`
	Errors int64 `json:"errors"`
	Tokens int64 `json:"tokens" doc:"That its instructions took"`
}

func useOf(u library.Use) UseJSON { return UseJSON{u.Loads, u.Calls, u.Errors, u.Tokens} }

// dayJSON is the use of a skill on a day.
type dayJSON struct {
	Date string `json:"date" format:"date" doc:"In UTC"`
	UseJSON
}

func dayOf(d store.Day) dayJSON { return dayJSON{d.Date.UTC().Format(time.DateOnly), useOf(d.Use)} }

// usedSkill is the use of a skill, and which it is.
type usedSkill struct {
	SkillID   string `json:"skill_id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	UseJSON
	Used *time.Time `json:"used,omitempty" doc:"For the last time; not there where it was not used since then"`
}

func usedOf(u library.Used) usedSkill {
	return usedSkill{u.ID, string(u.Namespace), u.Name, useOf(u.Use), when(u.Use.Used)}
}

// UsageDays says how far back usage is looked at.
type UsageDays struct {
	Days int `query:"days" minimum:"1" maximum:"3650" default:"30" doc:"Since so many days ago"`
}

// since is midnight in UTC of the first of the days, the last of which is today.
func (d UsageDays) since() time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-d.Days)
}

// UsageOf names namespaces in a query.
type UsageOf struct {
	Namespace []string `query:"namespace,explode" maxItems:"100" doc:"default is your own, public is everybody's, else the name of a group, user:ID or group:ID; without, all of which you may know the usage"`
}

func (h *Hub) skillUsageAPI(api huma.API) {
	add(h, api, operation("get-skill-usage", "GET", "/skills/{skill}/usage", "How much a skill was used on each day on which it was"), h.getSkillUsage)
	add(h, api, operation("list-usage", "GET", "/usage", "How much each skill was used, by name"), h.listUsage)
	add(h, api, operation("list-unused", "GET", "/usage/unused", "Skills that were there all that time and not used"), h.listUnused)
}

func (h *Hub) getSkillUsage(ctx context.Context, in *struct {
	SkillPath
	UsageDays
}) (*body[listed[dayJSON]], error) {
	days, err := h.library.UsageDays(ctx, account.FromContext(ctx), in.Skill, in.since())
	return page(days, "", err, dayOf)
}

func (h *Hub) listUsage(ctx context.Context, in *struct {
	UsageOf
	UsageDays
	Paging
}) (*body[listed[usedSkill]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	used, next, err := h.library.UsedIn(ctx, p, namespaces, in.since(), in.page())
	return page(used, next, err, usedOf)
}

func (h *Hub) listUnused(ctx context.Context, in *struct {
	UsageOf
	UsageDays
	Paging
}) (*body[listed[SkillJSON]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	skills, next, err := h.library.Unused(ctx, p, namespaces, in.since(), in.page())
	return page(skills, next, err, skillOf)
}
