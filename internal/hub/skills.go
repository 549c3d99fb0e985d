package hub

import (
	"context"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// SkillPath names a skill in a path.
type SkillPath struct {
	Skill string `path:"skill" maxLength:"64" doc:"The id of a skill"`
}

// skillDetail is a skill, and what a page about it shows.
type skillDetail struct {
	SkillJSON
	Listings []string          `json:"listings" nullable:"false" doc:"The namespaces in which it is seen, of those that you may know of"`
	Version  *SkillVersionJSON `json:"currentVersion,omitempty" doc:"The current version; not there where you may not read it"`
	Can      []string          `json:"can" nullable:"false" doc:"What you may do with it, as skill.change"`
}

type skillChange struct {
	Hidden *bool `json:"hidden,omitempty" doc:"Out of lists and of what names find; what names it already goes on using it"`
	Pinned *bool `json:"pinned,omitempty" doc:"Whether updates leave an imported skill as it is"`
}

// skillChanged is what changing a skill did.
type skillChanged struct {
	References *referencesJSON `json:"references,omitempty" doc:"Who uses a skill that was hidden or shown"`
}

func (h *Hub) skillsAPI(api huma.API) {
	add(h, api, operation("list-skills", "GET", "/skills", "Skills by name, of each name the nearest"), h.listSkills)
	h.uploads(api)
	add(h, api, operation("get-skill", "GET", "/skills/{skill}", "A skill, with what you may do with it"), h.getSkill)
	add(h, api, operation("change-skill", "PATCH", "/skills/{skill}", "Hide or show a skill, or keep it from updates"), h.changeSkill)
	add(h, api, operation("delete-skill", "DELETE", "/skills/{skill}", "Delete a skill that nothing refers to, with all its versions"), h.deleteSkill)
	add(h, api, operation("publish-skill", "PUT", "/skills/{skill}/listings/{namespace}", "Show a skill to a group, or to everybody"), h.publishSkill)
	add(h, api, operation("withdraw-skill", "DELETE", "/skills/{skill}/listings/{namespace}", "Take a skill out of a namespace that it was published to"), h.withdrawSkill)
	h.references(api)
}

func (h *Hub) listSkills(ctx context.Context, in *struct {
	Paging
	Namespace []string `query:"namespace,explode" maxItems:"500" doc:"default is your own, public is everybody's, else the name of a group, user:ID or group:ID; without, all that you reach by name"`
	Text      string   `query:"q" maxLength:"1000" doc:"Part of the name, the title, the tags or the description"`
	Hidden    bool     `query:"hidden" doc:"Also hidden ones, of those that you manage"`
	Shadowed  bool     `query:"shadowed" doc:"Also those whose name a nearer namespace has"`
}) (*body[listed[SkillJSON]], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	skills, next, err := h.library.List(ctx, p, library.Query{In: namespaces, Text: in.Text, Hidden: in.Hidden, Shadowed: in.Shadowed, Page: in.page()})
	return page(skills, next, err, skillOf)
}

// namespaces are those that somebody means, each once.
func (h *Hub) namespaces(ctx context.Context, p account.Principal, written []string) ([]store.Namespace, error) {
	var out []store.Namespace
	for _, w := range written {
		n, err := h.kinds.Namespace(ctx, p, w)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

func (h *Hub) getSkill(ctx context.Context, in *SkillPath) (*body[skillDetail], error) {
	p := account.FromContext(ctx)
	s, err := h.library.Skill(ctx, p, in.Skill)
	if err != nil {
		return nil, err
	}
	return answered(h.skillDetail(ctx, p, s))
}

// skillDetail is a skill with what somebody may know of it.
func (h *Hub) skillDetail(ctx context.Context, p account.Principal, s *library.Skill) (skillDetail, error) {
	out := skillDetail{SkillJSON: skillOf(s), Listings: texts(s.Listings)}
	rights, err := h.library.Rights(ctx, p, s.ID)
	if err != nil {
		return out, err
	}
	out.Can = texts(rights)
	if !slices.Contains(rights, account.SkillRead) {
		return out, nil
	}
	v, err := h.library.Version(ctx, p, s.ID, 0)
	if err != nil {
		return out, err
	}
	current := skillVersionOf(v)
	out.Version = &current
	scores, err := h.library.Scores(ctx, p, []string{s.ID})
	if score, ok := scores[s.ID]; ok {
		out.Rating = skillScoreOf(&score)
	}
	return out, err
}

// texts are names of some type as they are written.
func texts[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

func (h *Hub) changeSkill(ctx context.Context, in *struct {
	SkillPath
	Body skillChange
}) (*body[skillChanged], error) {
	p := account.FromContext(ctx)
	out := skillChanged{}
	if pinned := in.Body.Pinned; pinned != nil { // first, as it is what may not be possible
		if err := h.library.Pin(ctx, p, in.Skill, *pinned); err != nil {
			return nil, err
		}
	}
	if hidden := in.Body.Hidden; hidden != nil {
		refs, err := h.library.Hide(ctx, p, in.Skill, *hidden)
		if err != nil {
			return nil, err
		}
		out.References = referencesOf(refs)
	}
	return answered(out, nil)
}

// deletionJSON is what deleting a skill did, or would do.
type deletionJSON struct {
	Deleted    bool           `json:"deleted"`
	References referencesJSON `json:"references" doc:"What keeps it, or what was removed with it"`
}

func (h *Hub) deleteSkill(ctx context.Context, in *struct {
	SkillPath
	Dry    bool `query:"dry" doc:"Change nothing, and say what would keep it"`
	Unbind bool `query:"unbind" doc:"Take it out of all that refers to it"`
}) (*body[deletionJSON], error) {
	d, err := h.library.Delete(ctx, account.FromContext(ctx), in.Skill, in.Dry, in.Unbind)
	if err != nil {
		return nil, err
	}
	return answered(deletionJSON{d.Deleted, *referencesOf(&d.References)}, nil)
}

// ListingPath names a skill and a namespace that shows it, in a path.
type ListingPath struct {
	SkillPath
	Namespace string `path:"namespace" maxLength:"100" doc:"public, the name of a group, or group:ID"`
}

func (h *Hub) publishSkill(ctx context.Context, in *ListingPath) (*nothing, error) {
	p := account.FromContext(ctx)
	n, err := h.kinds.Namespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	return nil, h.library.Publish(ctx, p, in.Skill, n)
}

func (h *Hub) withdrawSkill(ctx context.Context, in *struct {
	ListingPath
	Force bool `query:"force" doc:"Also where something reaches it there, and does no longer then"`
}) (*body[referencesJSON], error) {
	p := account.FromContext(ctx)
	n, err := h.kinds.Namespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	lost, err := h.library.Withdraw(ctx, p, in.Skill, n, in.Force)
	if err != nil {
		return nil, err
	}
	return answered(*referencesOf(lost), nil)
}
