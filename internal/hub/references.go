package hub

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// referenceJSON is an item that refers to a skill.
type referenceJSON struct {
	Kind      string `json:"kind" doc:"Ghost, Bot or Team; Skill for a dependent skill; Default; or Listing for a namespace that lists it"`
	ID        string `json:"id" doc:"Of the kind or skill; for defaults and listings the namespace"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace" doc:"Owner"`
	Slot      string `json:"slot,omitempty" doc:"Field with the reference"`
	Precise   bool   `json:"precise" doc:"Whether it refers to the ID of the skill, not to its name"`
	Digest    string `json:"content_hash,omitempty" doc:"Digest of the referenced version"`
}

// referencesJSON lists the items that refer to a skill.
type referencesJSON struct {
	Seen   []referenceJSON `json:"seen" nullable:"false"`
	Others int             `json:"others" doc:"Number of others that you may not see"`
	More   bool            `json:"more" doc:"Whether there are more than were counted"`
}

func referencesOf(refs *library.References) *referencesJSON {
	out := &referencesJSON{Seen: make([]referenceJSON, len(refs.Visible)), Others: refs.Hidden, More: refs.More}
	for i, r := range refs.Visible {
		out.Seen[i] = referenceJSON{r.Kind, r.ID, r.Name, string(r.Namespace), r.Slot, r.Precise, r.Digest}
	}
	return out
}

func (h *Hub) references(api huma.API) {
	add(h, api, operation("list-references", "GET", "/skills/{skill}/references", "List the references to a skill"), h.listReferences)
	add(h, api, operation("remove-references", "DELETE", "/skills/{skill}/references", "Remove all references to a skill, and return those that are left"), h.removeReferences)
	add(h, api, operation("remove-reference", "DELETE", "/skills/{skill}/references/{kind}/{reference}", "Remove one reference to a skill"), h.removeReference)
}

func (h *Hub) listReferences(ctx context.Context, in *SkillPath) (*body[referencesJSON], error) {
	refs, err := h.library.References(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return bodyOf(*referencesOf(refs), nil)
}

func (h *Hub) removeReferences(ctx context.Context, in *SkillPath) (*body[referencesJSON], error) {
	left, err := h.library.UnbindAll(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return bodyOf(*referencesOf(left), nil)
}

func (h *Hub) removeReference(ctx context.Context, in *struct {
	SkillPath
	Kind      string `path:"kind" maxLength:"64" doc:"As in a reference"`
	Reference string `path:"reference" maxLength:"100" doc:"ID of the reference"`
}) (*noBody, error) {
	return nil, h.library.Unbind(ctx, account.FromContext(ctx), in.Skill, library.Reference{Kind: in.Kind, ID: in.Reference})
}
