package skillapi

import (
	"context"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

func (h *Handlers) addReferences() {
	api.Add(h.Server, api.Operation("list-references", "GET", "/skills/{skill}/references", "List the references to a skill"), h.listReferences)
	api.Add(h.Server, api.Operation("remove-references", "DELETE", "/skills/{skill}/references", "Remove all references to a skill, and return those that are left"), h.removeReferences)
	api.Add(h.Server, api.Operation("remove-reference", "DELETE", "/skills/{skill}/references/{kind}/{reference}", "Remove one reference to a skill"), h.removeReference)
}

func (h *Handlers) listReferences(ctx context.Context, in *api.SkillPath) (*api.Body[library.References], error) {
	refs, err := h.Library.References(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*refs, nil)
}

func (h *Handlers) removeReferences(ctx context.Context, in *api.SkillPath) (*api.Body[library.References], error) {
	left, err := h.Library.UnbindAll(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*left, nil)
}

func (h *Handlers) removeReference(ctx context.Context, in *struct {
	api.SkillPath
	Kind      string `path:"kind" maxLength:"64" doc:"As in a reference"`
	Reference string `path:"reference" maxLength:"100" doc:"ID of the reference"`
}) (*api.NoBody, error) {
	return nil, h.Library.Unbind(ctx, account.FromContext(ctx), in.Skill, library.Reference{Kind: in.Kind, ID: in.Reference})
}
