package hub

import (
	"context"
	"errors"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
)

// SkillHitJSON is a skill that a search found.
type SkillHitJSON struct {
	SkillJSON
	Score float64 `json:"score" doc:"More is better; comparable within one search only"`
}

// candidateJSON is a skill that a name could stand for, and its fate.
type candidateJSON struct {
	In     string    `json:"in" doc:"The namespace in which it was found"`
	Skill  SkillJSON `json:"skill"`
	Chosen bool      `json:"chosen"`
	Reason string    `json:"reason"`
}

// resolvedJSON is what a reference stands for.
type resolvedJSON struct {
	In      string           `json:"in" doc:"The namespace in which it was found"`
	Skill   SkillJSON        `json:"skill"`
	Version SkillVersionJSON `json:"version" doc:"The one that is named by its digest, or the current one"`
}

func (h *Hub) searchAPI(api huma.API) {
	add(h, api, operation("search-skills", "GET", "/search", "The skills that fit a query, the best first"), h.searchSkills)
	add(h, api, operation("explain-skill", "GET", "/skills/explain", "Every skill that a name could stand for, nearest first, and why"), h.explainSkill)
	add(h, api, operation("resolve-skill", "GET", "/resolve", "What a reference to a skill stands for when you use it"), h.resolveSkill)
}

func (h *Hub) searchSkills(ctx context.Context, in *struct {
	Query string `query:"q" required:"true" minLength:"1" maxLength:"1000"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"10" doc:"How many at most"`
}) (*body[listed[SkillHitJSON]], error) {
	hits, err := h.library.Search(ctx, account.FromContext(ctx), in.Query, in.Limit)
	return page(hits, "", err, func(hit library.Hit) SkillHitJSON { return SkillHitJSON{skillOf(hit.Skill), hit.Score} })
}

func (h *Hub) explainSkill(ctx context.Context, in *struct {
	Name string `query:"name" required:"true" minLength:"1" maxLength:"256"`
}) (*body[listed[candidateJSON]], error) {
	found, err := h.library.Explain(ctx, account.FromContext(ctx), in.Name)
	return page(found, "", err, func(c library.Candidate) candidateJSON {
		return candidateJSON{string(c.In), skillOf(c.Skill), c.Chosen, c.Reason}
	})
}

// SkillReference names a skill in a query, by its name alone or precisely.
type SkillReference struct {
	Name      string `query:"name" maxLength:"256"`
	SkillID   string `query:"skill_id" maxLength:"64" doc:"Of one skill, whatever it is called elsewhere"`
	Namespace string `query:"namespace" maxLength:"100" doc:"Where the name is looked for, as in lists; without, everywhere that you reach, the nearest first"`
	Public    bool   `query:"is_public" doc:"The same as the namespace public"`
	Digest    string `query:"content_hash" maxLength:"100" doc:"Of one version; without, the current one"`
}

// ref is the reference as the library has it.
func (h *Hub) ref(ctx context.Context, p account.Principal, r SkillReference) (library.Ref, error) {
	out := library.Ref{Name: r.Name, ID: r.SkillID, Digest: r.Digest}
	switch {
	case r.Name == "" && r.SkillID == "":
		return out, &Problem{Status: 422, Code: "invalid", Detail: "a skill is not named", Next: "write name or skill_id"}
	case r.Public:
		out.Namespace = store.Public
		return out, nil
	case r.Namespace == "":
		return out, nil
	}
	var err error
	out.Namespace, err = h.kinds.Namespace(ctx, p, r.Namespace)
	return out, err
}

func (h *Hub) resolveSkill(ctx context.Context, in *SkillReference) (*body[resolvedJSON], error) {
	p := account.FromContext(ctx)
	ref, err := h.ref(ctx, p, *in)
	if err != nil {
		return nil, err
	}
	r, err := h.library.Resolve(ctx, p, ref)
	if errors.Is(err, library.ErrConflict) {
		return nil, &Problem{Status: 409, Code: "another_name", Detail: "the skill of that id has another name", Next: "leave name out, or write its name"}
	}
	if err != nil {
		return nil, err
	}
	return answered(resolvedJSON{string(r.In), skillOf(r.Skill), skillVersionOf(r.Version)}, nil)
}
