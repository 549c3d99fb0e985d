package skillapi

import (
	"context"
	"errors"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// resolvedJSON is the result of resolving a skill reference.
type resolvedJSON struct {
	In      string         `json:"in" doc:"Namespace in which it was found"`
	Skill   *library.Skill `json:"skill"`
	Version SkillVersion   `json:"version" doc:"The version of the digest, or the current one"`
}

func (h *Handlers) searchAPI() {
	api.Add(h.Server, api.Operation("search-skills", "GET", "/search", "Search skills, best match first"), h.searchSkills)
	api.Add(h.Server, api.Operation("explain-skill", "GET", "/skills/explain", "Explain to which skills a name could refer, nearest first"), h.explainSkill)
	api.Add(h.Server, api.Operation("resolve-skill", "GET", "/resolve", "Resolve a reference to a skill"), h.resolveSkill)
}

func (h *Handlers) searchSkills(ctx context.Context, in *struct {
	Query string `query:"q" required:"true" minLength:"1" maxLength:"1000"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"10" doc:"Maximum number of items"`
}) (*api.Body[api.ListBody[library.Hit]], error) {
	hits, err := h.Library.Search(ctx, account.FromContext(ctx), in.Query, in.Limit)
	return api.ListOf(hits, "", err)
}

func (h *Handlers) explainSkill(ctx context.Context, in *struct {
	Name string `query:"name" required:"true" minLength:"1" maxLength:"256"`
}) (*api.Body[api.ListBody[library.Candidate]], error) {
	found, err := h.Library.Explain(ctx, account.FromContext(ctx), in.Name)
	return api.ListOf(found, "", err)
}

// SkillReference refers to a skill in a query, by name or by ID.
type SkillReference struct {
	Name      string `query:"name" maxLength:"256"`
	SkillID   string `query:"skill_id" maxLength:"64" doc:"ID of a skill, regardless of its name"`
	Namespace string `query:"namespace" maxLength:"100" doc:"Namespace of the name, as in lists; default all that you can access, nearest first"`
	Public    bool   `query:"is_public" doc:"Same as namespace=public"`
	Digest    string `query:"content_hash" maxLength:"100" doc:"Digest of a version; default the current one"`
}

// ref converts the query to a library reference.
func (h *Handlers) ref(ctx context.Context, p account.Principal, r SkillReference) (library.Ref, error) {
	out := library.Ref{Name: r.Name, ID: r.SkillID, Digest: r.Digest}
	switch {
	case r.Name == "" && r.SkillID == "":
		return out, &api.Problem{Status: 422, Code: "invalid", Detail: "no skill given", Next: "send name or skill_id"}
	case r.Public:
		out.Namespace = store.Public
		return out, nil
	case r.Namespace == "":
		return out, nil
	}
	var err error
	out.Namespace, err = h.Agents.ResolveNamespace(ctx, p, r.Namespace)
	return out, err
}

func (h *Handlers) resolveSkill(ctx context.Context, in *SkillReference) (*api.Body[resolvedJSON], error) {
	p := account.FromContext(ctx)
	ref, err := h.ref(ctx, p, *in)
	if err != nil {
		return nil, err
	}
	r, err := h.Library.Resolve(ctx, p, ref)
	if errors.Is(err, library.ErrConflict) {
		return nil, &api.Problem{Status: 409, Code: "another_name", Detail: "the skill with that ID has another name", Next: "omit name, or send its name"}
	}
	if err != nil {
		return nil, err
	}
	return api.BodyOf(resolvedJSON{string(r.In), r.Skill, newSkillVersion(r.Version)}, nil)
}
