package skillapi

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// ratingJSON is the rating of a skill by a user.
type ratingJSON struct {
	User    string    `json:"user" doc:"ID of the user"`
	Stars   int64     `json:"stars" minimum:"1" maximum:"5"`
	Comment string    `json:"words"`
	Updated time.Time `json:"updated"`
}

func ratingOf(r library.Rating) ratingJSON {
	return ratingJSON{User: r.UserID, Stars: r.Stars, Comment: r.Review, Updated: r.Updated}
}

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
}) (*api.Body[api.ListBody[ratingJSON]], error) {
	ratings, next, err := h.Library.Ratings(ctx, account.FromContext(ctx), in.Skill, in.Page())
	return api.PageOf(ratings, next, err, ratingOf)
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
