package skillapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

type newRating struct {
	Stars   int    `json:"stars" minimum:"1" maximum:"5"`
	Comment string `json:"words,omitempty" maxLength:"8192" doc:"Reason"`
}

func (h *Handlers) ratingsAPI() {
	api.Add(h.Server, api.Operation("list-ratings", "GET", "/skills/{skill}/ratings", "List the ratings of a skill"), h.listRatings)
	api.Add(h.Server, api.Operation("rate-skill", "PUT", "/skills/{skill}/rating", "Rate a skill of another user, or change your rating"), h.rateSkill)
	api.Add(h.Server, api.Operation("unrate-skill", "DELETE", "/skills/{skill}/rating", "Delete your rating"), h.unrateSkill)
}

func (h *Handlers) listRatings(ctx context.Context, in *struct {
	api.SkillPath
	api.Paging
}) (*api.Body[api.ListBody[library.Rating]], error) {
	ratings, next, err := h.Library.Ratings(ctx, account.FromContext(ctx), in.Skill, in.Page())
	return api.ListOf(ratings, next, err)
}

func (h *Handlers) rateSkill(ctx context.Context, in *struct {
	api.SkillPath
	Body newRating
}) (*api.NoBody, error) {
	return nil, h.Library.Rate(ctx, account.FromContext(ctx), in.Skill, in.Body.Stars, in.Body.Comment)
}

func (h *Handlers) unrateSkill(ctx context.Context, in *api.SkillPath) (*api.NoBody, error) {
	return nil, h.Library.RemoveRating(ctx, account.FromContext(ctx), in.Skill)
}
