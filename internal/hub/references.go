package hub

import (
	"context"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// referenceJSON is one thing that would lose a skill.
type referenceJSON struct {
	Kind      string `json:"kind" doc:"Ghost and the like, Skill for one that needs it, Default, or Listing for a namespace that shows it"`
	ID        string `json:"id" doc:"Of the kind or skill; of defaults and listings their namespace"`
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace" doc:"Whose it is"`
	Slot      string `json:"slot,omitempty" doc:"Where in the thing it is named"`
	Precise   bool   `json:"precise" doc:"By the id of the skill, not by its name"`
	Digest    string `json:"content_hash,omitempty" doc:"Of the version that it names"`
}

// referencesJSON are all that would lose a skill.
type referencesJSON struct {
	Seen   []referenceJSON `json:"seen" nullable:"false"`
	Others int             `json:"others" doc:"How many there are besides, which you may not see"`
	More   bool            `json:"more" doc:"Whether there are more than were looked at"`
}

func referencesOf(refs *library.References) *referencesJSON {
	out := &referencesJSON{Seen: make([]referenceJSON, len(refs.Seen)), Others: refs.Others, More: refs.More}
	for i, r := range refs.Seen {
		out.Seen[i] = referenceJSON{r.Kind, r.ID, r.Name, string(r.Namespace), r.Slot, r.Precise, r.Digest}
	}
	return out
}

func (h *Hub) references(api huma.API) {
	add(h, api, operation("list-references", "GET", "/skills/{skill}/references", "What would lose a skill if it were deleted"), h.listReferences)
	add(h, api, operation("remove-references", "DELETE", "/skills/{skill}/references", "Take a skill out of all that refers to it, and say what is left"), h.removeReferences)
	add(h, api, operation("remove-reference", "DELETE", "/skills/{skill}/references/{kind}/{reference}", "Take a skill out of one thing that refers to it"), h.removeReference)
}

func (h *Hub) listReferences(ctx context.Context, in *SkillPath) (*body[referencesJSON], error) {
	refs, err := h.library.References(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return answered(*referencesOf(refs), nil)
}

func (h *Hub) removeReferences(ctx context.Context, in *SkillPath) (*body[referencesJSON], error) {
	left, err := h.library.UnbindAll(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return answered(*referencesOf(left), nil)
}

func (h *Hub) removeReference(ctx context.Context, in *struct {
	SkillPath
	Kind      string `path:"kind" maxLength:"64" doc:"As a reference has it"`
	Reference string `path:"reference" maxLength:"100" doc:"Its id"`
}) (*nothing, error) {
	return nil, h.library.Unbind(ctx, account.FromContext(ctx), in.Skill, library.Reference{Kind: in.Kind, ID: in.Reference})
}
