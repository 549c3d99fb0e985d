package skillapi

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

type dismissal struct {
	Reason string `json:"reason" minLength:"1" maxLength:"8192" doc:"Why the changes are not needed"`
}

// viewedFiles lists the files of a version that the user has viewed.
type viewedFiles struct {
	Paths []string `json:"paths" nullable:"false"`
}

type viewedChange struct {
	Path   string `json:"path" minLength:"1" maxLength:"1024"`
	Viewed bool   `json:"viewed"`
}

func (h *Handlers) reviewStatusAPI() {
	api.Add(h.Server, api.Operation("get-review", "GET", "/skills/{skill}/versions/{version}/review", "Get what a version needs before it can be published, and its history"), h.getReview)
	api.Add(h.Server, api.Operation("dismiss-changes", "POST", "/skills/{skill}/change-requests/{request}/dismiss", "Dismiss a reviewer's request for changes"), h.dismissChanges)
	api.Add(h.Server, api.Operation("list-viewed-files", "GET", "/skills/{skill}/versions/{version}/viewed", "List the files of a version that you marked as viewed"), h.listViewed)
	api.Add(h.Server, api.Operation("set-viewed-file", "PUT", "/skills/{skill}/versions/{version}/viewed", "Mark a file of a version as viewed by you, until it changes"), h.setViewed)
}

func (h *Handlers) getReview(ctx context.Context, in *VersionPath) (*api.Body[library.ReviewStatus], error) {
	s, err := h.Library.ReviewStatus(ctx, account.FromContext(ctx), in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*s, nil)
}

func (h *Handlers) dismissChanges(ctx context.Context, in *struct {
	api.SkillPath
	Request string `path:"request" maxLength:"64" doc:"ID of a request for changes, from get-review"`
	Body    dismissal
}) (*api.NoBody, error) {
	err := h.Library.DismissChanges(ctx, account.FromContext(ctx), in.Skill, in.Request, in.Body.Reason)
	if errors.Is(err, library.ErrConflict) {
		return nil, &api.Problem{Status: 409, Code: "changed", Detail: "the request for changes is closed or does not exist", Next: "load the review again"}
	}
	return nil, err
}

func (h *Handlers) listViewed(ctx context.Context, in *VersionPath) (*api.Body[viewedFiles], error) {
	paths, err := h.Library.ViewedFiles(ctx, account.FromContext(ctx), in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	return api.BodyOf(viewedFiles{paths}, nil)
}

func (h *Handlers) setViewed(ctx context.Context, in *struct {
	VersionPath
	Body viewedChange
}) (*api.NoBody, error) {
	return nil, h.Library.SetViewed(ctx, account.FromContext(ctx), in.Skill, in.number(), in.Body.Path, in.Body.Viewed)
}
