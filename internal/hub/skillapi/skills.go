package skillapi

import (
	"context"
	"slices"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/skillname"
	"github.com/loadout-dev/loadout/internal/store"
)

// skillDetail holds the data for a skill's page.
type skillDetail struct {
	library.Skill
	Listings []string      `json:"listings" nullable:"false" doc:"Namespaces that list it, of those that you may see"`
	Version  *SkillVersion `json:"currentVersion,omitempty" doc:"Current version; absent if you may not read it"`
	// Publisher is visible to everybody who may read the current version.
	Publisher *library.Publisher `json:"publisher,omitempty" doc:"Who signed the current version; absent if it has no valid signature"`
	// SourceStatus is set for users who may change the skill.
	SourceStatus *library.SourceStatus `json:"sourceStatus,omitempty" doc:"Last check of the source; absent if it was not checked, or if you must not change the skill"`
	Can          []string              `json:"can" nullable:"false" doc:"Actions that you may do, for example skill.change"`
	// Installable is like [library.Library.IsInstallable] with portable names only.
	Installable bool `json:"installable" doc:"Whether you can install it by its name with loadout add: you may download it, its code is approved or your own, and no skill with higher precedence has its name"`
}

type skillChange struct {
	Hidden *bool `json:"hidden,omitempty" doc:"Exclude it from lists and names; existing references keep working"`
	Pinned *bool `json:"pinned,omitempty" doc:"Whether updates skip an imported skill"`
}

// skillChanged is the result of changing a skill.
type skillChanged struct {
	References *library.References `json:"references,omitempty" doc:"References to a skill that was hidden or shown"`
}

// Register adds the operations to the API.
func (h *Handlers) Register() {
	for _, group := range []func(){
		h.skillsAPI, h.versionsAPI, h.reviewsAPI, h.reviewStatusAPI, h.commentsAPI, h.searchAPI, h.draftsAPI, h.importsAPI,
		h.defaultsAPI, h.ratingsAPI, h.skillUsageAPI, h.notificationsAPI, h.addSkillIndex,
	} {
		group()
	}
}

func (h *Handlers) skillsAPI() {
	api.Add(h.Server, api.Operation("list-skills", "GET", "/skills", "List skills by name, for each name the nearest"), h.listSkills)
	api.Add(h.Server, api.Operation("list-skill-sections", "GET", "/skills/sections", "List the skills to show at first: those that need your attention, that were approved recently, that your groups use most, and new ones"), h.listSections)
	h.addUploads()
	api.Add(h.Server, api.Operation("get-skill", "GET", "/skills/{skill}", "Get a skill, with the actions that you may do"), h.getSkill)
	api.Add(h.Server, api.Operation("change-skill", "PATCH", "/skills/{skill}", "Hide or show a skill, or exclude it from updates"), h.changeSkill)
	api.Add(h.Server, api.Operation("delete-skill", "DELETE", "/skills/{skill}", "Delete a skill without references to it, with all versions"), h.deleteSkill)
	api.Add(h.Server, api.Operation("publish-skill", "PUT", "/skills/{skill}/listings/{namespace}", "Publish a skill to a group or to everyone"), h.publishSkill)
	api.Add(h.Server, api.Operation("withdraw-skill", "DELETE", "/skills/{skill}/listings/{namespace}", "Unpublish a skill from a namespace"), h.withdrawSkill)
	h.addReferences()
}

// skillList is a page of skills.
type skillList struct {
	api.ListBody[library.Skill]
	Total  int             `json:"total" doc:"Number of skills on all pages"`
	Facets *library.Facets `json:"facets,omitempty" doc:"Numbers of skills without the filters code, review, imported, tag, category, attention, unused and only_hidden; only with facets"`
}

func (h *Handlers) listSkills(ctx context.Context, in *struct {
	api.Paging
	api.UsageDays
	Namespace  []string       `query:"namespace,explode" maxItems:"500" doc:"default for your own, public, hub for the directories of the operator, bundled, the name of a group, user:ID or group:ID; default all that you can access by name"`
	Text       string         `query:"q" maxLength:"1000" doc:"Part of the name, the title, the tags or the description"`
	Hidden     bool           `query:"hidden" doc:"Include hidden skills that you manage"`
	Shadowed   bool           `query:"shadowed" doc:"Include skills that are shadowed by skills in other namespaces"`
	Order      library.Order  `query:"sort" enum:"name,title,relevance,updated,used,rating,tokens,created,approved,team" doc:"Order; relevance puts matches of a search for q first; approved puts skills first whose code a reviewer approved last; team puts skills first that you and the members of your groups use most. Default name"`
	Code       string         `query:"code" enum:"yes,no" doc:"Only skills with or without code"`
	Review     library.Review `query:"review" enum:"pending,approved,rejected" doc:"Only skills whose code has this review"`
	Imported   string         `query:"imported" enum:"yes,no" doc:"Only imported skills, or only others"`
	Tag        string         `query:"tag" maxLength:"256" doc:"Only skills with this tag"`
	Category   string         `query:"category" maxLength:"256" doc:"Only skills in this category"`
	Attention  bool           `query:"attention" doc:"Only skills that need your attention, including those shadowed by skills in other namespaces"`
	Unused     bool           `query:"unused" doc:"Only skills that are older than the period and were not used in it, as far as you may see their usage"`
	OnlyHidden bool           `query:"only_hidden" doc:"Only hidden skills that you manage"`
	Facets     bool           `query:"facets" doc:"Include facets"`
	Uses       bool           `query:"uses" doc:"Include the uses of each skill in the period"`
}) (*api.Body[skillList], error) {
	p := account.FromContext(ctx)
	namespaces, err := h.namespaces(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	found, err := h.Library.List(ctx, p, library.Query{In: namespaces, Text: in.Text, Hidden: in.Hidden || in.OnlyHidden, Shadowed: in.Shadowed, OnlyHidden: in.OnlyHidden,
		Code: yesOrNo(in.Code), Review: in.Review, Imported: yesOrNo(in.Imported), Tag: in.Tag, Category: in.Category, Attention: in.Attention, Unused: in.Unused, Order: in.Order, Since: in.Since(), Uses: in.Uses, Attentions: true, Page: in.Page()})
	if err != nil {
		return nil, err
	}
	page, err := api.ValuesOf(found.Skills, found.Next, nil)
	out := skillList{ListBody: page.Body, Total: found.Total}
	if in.Facets {
		out.Facets = &found.Facets
	}
	return api.BodyOf(out, err)
}

func (h *Handlers) listSections(ctx context.Context, in *api.UsageDays) (*api.Body[library.Overview], error) {
	o, err := h.Library.Overview(ctx, account.FromContext(ctx), in.Since())
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*o, nil)
}

// yesOrNo converts yes to true and other text to false. It returns nil for "".
func yesOrNo(text string) *bool {
	if text == "" {
		return nil
	}
	yes := text == "yes"
	return &yes
}

// namespaces resolves namespace names and removes duplicates.
func (h *Handlers) namespaces(ctx context.Context, p account.Principal, names []string) ([]store.Namespace, error) {
	var out []store.Namespace
	for _, w := range names {
		n, err := h.Agents.ResolveNamespace(ctx, p, w)
		if err != nil {
			return nil, err
		}
		if !slices.Contains(out, n) {
			out = append(out, n)
		}
	}
	return out, nil
}

func (h *Handlers) getSkill(ctx context.Context, in *api.SkillPath) (*api.Body[skillDetail], error) {
	p := account.FromContext(ctx)
	s, err := h.Library.Skill(ctx, p, in.Skill)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(h.skillDetail(ctx, p, s))
}

// skillDetail returns the details of a skill that the principal may see.
func (h *Handlers) skillDetail(ctx context.Context, p account.Principal, s *library.Skill) (skillDetail, error) {
	out := skillDetail{Skill: *s, Listings: toStrings(s.Listings)}
	rights, err := h.Library.AllowedActions(ctx, p, s.ID)
	if err != nil {
		return out, err
	}
	out.Can = toStrings(rights)
	if s.Source != nil {
		if out.SourceStatus, err = h.Library.SourceStatus(ctx, p, s.ID); err != nil {
			return out, err
		}
	}
	if slices.Contains(rights, account.SkillDownload) && skillname.IsPortable(s.Name) {
		if out.Installable, err = h.Library.IsInstallable(ctx, p, s); err != nil {
			return out, err
		}
	}
	if !slices.Contains(rights, account.SkillRead) {
		return out, nil
	}
	v, err := h.Library.Version(ctx, p, s.ID, 0)
	if err != nil {
		return out, err
	}
	current := newSkillVersion(v)
	out.Version = &current
	if out.Publisher, err = h.Library.Publisher(ctx, p, s.ID, 0); err != nil {
		return out, err
	}
	out.Rating, err = h.Library.Score(ctx, p, s.ID)
	return out, err
}

// toStrings converts a list of string-typed values to strings.
func toStrings[T ~string](all []T) []string {
	out := make([]string, len(all))
	for i, one := range all {
		out[i] = string(one)
	}
	return out
}

func (h *Handlers) changeSkill(ctx context.Context, in *struct {
	api.SkillPath
	Body skillChange
}) (*api.Body[skillChanged], error) {
	p := account.FromContext(ctx)
	out := skillChanged{}
	if in.Body == (skillChange{}) {
		return api.BodyOf(out, h.Library.CheckChange(ctx, p, in.Skill))
	}
	if pinned := in.Body.Pinned; pinned != nil { // first, because it may fail
		if err := h.Library.Pin(ctx, p, in.Skill, *pinned); err != nil {
			return nil, err
		}
	}
	if hidden := in.Body.Hidden; hidden != nil {
		var err error
		if out.References, err = h.Library.Hide(ctx, p, in.Skill, *hidden); err != nil {
			return nil, err
		}
	}
	return api.BodyOf(out, nil)
}

func (h *Handlers) deleteSkill(ctx context.Context, in *struct {
	api.SkillPath
	Dry    bool `query:"dry" doc:"Report the references without deleting"`
	Unbind bool `query:"unbind" doc:"Remove all references to it"`
}) (*api.Body[library.Deletion], error) {
	d, err := h.Library.Delete(ctx, account.FromContext(ctx), in.Skill, in.Dry, in.Unbind)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*d, nil)
}

// ListingPath identifies a skill and a namespace that lists it.
type ListingPath struct {
	api.SkillPath
	Namespace string `path:"namespace" maxLength:"100" doc:"public, the name of a group, or group:ID"`
}

func (h *Handlers) publishSkill(ctx context.Context, in *ListingPath) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	n, err := h.Agents.ResolveNamespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	return nil, h.Library.Publish(ctx, p, in.Skill, n)
}

func (h *Handlers) withdrawSkill(ctx context.Context, in *struct {
	ListingPath
	Force bool `query:"force" doc:"Even if items then lose access to it"`
}) (*api.Body[library.References], error) {
	p := account.FromContext(ctx)
	n, err := h.Agents.ResolveNamespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	lost, err := h.Library.Unpublish(ctx, p, in.Skill, n, in.Force)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*lost, nil)
}
