package skillapi

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// Use holds the usage counts of a skill.
type Use struct {
	Loads  int64 `json:"loads"`
	Calls  int64 `json:"calls" doc:"Number of calls of its tools and scripts"`
	Errors int64 `json:"errors"`
	Tokens int64 `json:"tokens" doc:"Used by its instructions"`
}

func newUse(u library.Usage) Use { return Use{u.Loads, u.Calls, u.Errors, u.Tokens} }

// dayJSON is a skill's usage on one day.
type dayJSON struct {
	Date string `json:"date" format:"date" doc:"In UTC"`
	Use
}

func newDayJSON(d store.UsageDay) dayJSON {
	return dayJSON{d.Date.UTC().Format(time.DateOnly), newUse(d.SkillUsage)}
}

// usedSkill is a skill with its usage.
type usedSkill struct {
	SkillID   string `json:"skill_id"`
	Namespace string `json:"namespace"`
	Name      string `json:"name"`
	Use
	Used *time.Time `json:"used,omitempty" doc:"Last use; absent if unused in that time"`
}

func newUsedSkill(u library.SkillUsage) usedSkill {
	return usedSkill{u.ID, string(u.Namespace), u.Name, newUse(u.Usage), api.OptionalTime(u.Usage.LastUsed)}
}

// UsageOf holds the query parameters of a request for usage.
type UsageOf struct {
	Namespace []string `query:"namespace,explode" maxItems:"100" doc:"default for your own, public, the name of a group, user:ID or group:ID; default all whose usage you may see"`
}

func (h *Handlers) skillUsageAPI() {
	api.Add(h.Server, api.Operation("get-skill-usage", "GET", "/skills/{skill}/usage", "Get the use of a skill by day"), h.getSkillUsage)
	api.Add(h.Server, api.Operation("list-usage", "GET", "/usage", "Get the use of each skill by name"), h.listUsage)
	api.Add(h.Server, api.Operation("list-unused", "GET", "/usage/unused", "List the skills that were unused in a period"), h.listUnused)
}

func (h *Handlers) getSkillUsage(ctx context.Context, in *struct {
	api.SkillPath
	api.UsageDays
}) (*api.Body[api.ListBody[dayJSON]], error) {
	days, err := h.Library.UsageDays(ctx, account.FromContext(ctx), in.Skill, in.Since())
	return api.PageOf(days, "", err, newDayJSON)
}

func (h *Handlers) listUsage(ctx context.Context, in *struct {
	UsageOf
	api.UsageDays
	api.Paging
}) (*api.Body[api.ListBody[usedSkill]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	used, next, err := h.Library.ListUsage(ctx, p, namespaces, in.Since(), in.Page())
	return api.PageOf(used, next, err, newUsedSkill)
}

func (h *Handlers) listUnused(ctx context.Context, in *struct {
	UsageOf
	api.UsageDays
	api.Paging
}) (*api.Body[api.ListBody[library.Skill]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	skills, next, err := h.Library.ListUnused(ctx, p, namespaces, in.Since(), in.Page())
	return api.ValuesOf(skills, next, err)
}
