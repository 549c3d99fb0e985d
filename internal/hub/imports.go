package hub

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/remote"
	"github.com/loadout-dev/loadout/skilldiff"
)

// importTime is how long an operation may take that gets skills from elsewhere.
const importTime = 5 * time.Minute

// SourceRequest says where skills are, and where they are to be.
type SourceRequest struct {
	Source    string `json:"source" minLength:"1" maxLength:"4096" doc:"As owner/repo, owner/repo/dir@ref, https://host/repo.git//dir@ref, https://host/x.zip, or https://host for what a site publishes"`
	Namespace string `json:"namespace,omitempty" maxLength:"100" doc:"Where they are to be: public, the name of a group, user:ID or group:ID; without, your own"`
	Ref       string `json:"ref,omitempty" maxLength:"250" doc:"A branch, tag or commit of a repository, in place of the one in source"`
}

type importRequest struct {
	SourceRequest
	Commit    string   `json:"commit,omitempty" maxLength:"64" doc:"The commit that was looked at; without, what is there now"`
	Dirs      []string `json:"dirs,omitempty" nullable:"false" maxItems:"2000" doc:"The skills to take, by their directories; none is all"`
	Overwrite []string `json:"overwrite,omitempty" nullable:"false" maxItems:"2000" doc:"Names of skills that are there already, and get a new version"`
}

type updateRequest struct {
	Namespace string   `json:"namespace,omitempty" maxLength:"100" doc:"Without, your own"`
	IDs       []string `json:"ids,omitempty" nullable:"false" maxItems:"1000" doc:"The skills to update; none is all that were imported"`
}

// offerJSON is what there is at a place.
type offerJSON struct {
	Source   string        `json:"source" doc:"To be imported from"`
	Ref      string        `json:"ref,omitempty" doc:"The branch or tag that was followed"`
	Commit   string        `json:"commit,omitempty" doc:"Import with it takes what is shown here"`
	Skills   []offeredJSON `json:"skills" nullable:"false"`
	Problems []string      `json:"problems" nullable:"false" doc:"What there cannot be had, and why"`
}

// offeredJSON is a skill of a place.
type offeredJSON struct {
	Dir         string     `json:"dir" doc:"By which it is chosen"`
	Name        string     `json:"name"`
	Description string     `json:"description"`
	Version     string     `json:"version,omitempty" doc:"As its author calls it"`
	Here        *SkillJSON `json:"here,omitempty" doc:"The skill of that name that the namespace has already"`
	Same        bool       `json:"same" doc:"Whether that one has the same files"`
	Problem     string     `json:"problem,omitempty" doc:"Why it cannot be imported"`
}

func offerOf(o *library.Offer) offerJSON {
	out := offerJSON{Source: o.Source, Ref: o.Ref, Commit: o.Commit, Skills: make([]offeredJSON, len(o.Skills)), Problems: o.Problems}
	for i, s := range o.Skills {
		out.Skills[i] = offeredJSON{Dir: s.Dir, Name: s.Name, Description: s.Description, Version: s.Version, Same: s.Same, Problem: s.Problem}
		if s.Here != nil {
			here := skillOf(s.Here)
			out.Skills[i].Here = &here
		}
	}
	return out
}

// importedJSON is what became of the skills of a place.
type importedJSON struct {
	Created []importedSkill `json:"created" nullable:"false"`
	Updated []importedSkill `json:"updated" nullable:"false"`
	Skipped []importedSkill `json:"skipped" nullable:"false"`
}

type importedSkill struct {
	ID     string `json:"id,omitempty" doc:"Not there where the hub has no such skill"`
	Name   string `json:"name"`
	Dir    string `json:"dir" doc:"In the place"`
	Number int64  `json:"number,omitempty" doc:"Of the version that is current now"`
	Reason string `json:"reason,omitempty" doc:"Why it was skipped"`
}

func importedOf(i *library.Imported) importedJSON {
	list := func(changes []library.Change) []importedSkill {
		out := make([]importedSkill, len(changes))
		for i, c := range changes {
			out[i] = importedSkill(c)
		}
		return out
	}
	return importedJSON{list(i.Created), list(i.Updated), list(i.Skipped)}
}

// upgradeJSON is what an update of a skill would bring.
type upgradeJSON struct {
	Commit string        `json:"commit,omitempty" doc:"The state of its place that was compared"`
	Diff   skillDiffJSON `json:"diff" doc:"Of the current version and what is there"`
}

func (h *Hub) importsAPI(api huma.API) {
	addFor(h, api, operation("look-at-source", "POST", "/skills/import/look", "What skills there are at a place, and which of them a namespace has"), importTime, h.lookAtSource)
	addFor(h, api, operation("import-skills", "POST", "/skills/import", "Take skills from a place: created, updated, or skipped with the reason"), importTime, h.importSkills)
	addFor(h, api, operation("update-skills", "POST", "/skills/update", "Take the newest state of imported skills from their places"), importTime, h.updateSkills)
	addFor(h, api, operation("get-upgrade", "GET", "/skills/{skill}/upgrade", "How an imported skill differs from what is at its place now"), importTime, h.getUpgrade)
}

func (h *Hub) lookAtSource(ctx context.Context, in *struct{ Body SourceRequest }) (*body[offerJSON], error) {
	p := account.FromContext(ctx)
	namespace, source, err := h.sourceOf(ctx, p, in.Body)
	if err != nil {
		return nil, err
	}
	offer, err := h.library.Look(ctx, p, namespace, source)
	if err != nil {
		return nil, besideSource(source, err)
	}
	return answered(offerOf(offer), nil)
}

// sourceOf is the namespace of a request, and its source with the ref.
func (h *Hub) sourceOf(ctx context.Context, p account.Principal, r SourceRequest) (store.Namespace, string, error) {
	in, err := h.kinds.Namespace(ctx, p, r.Namespace)
	if err != nil || r.Ref == "" {
		return in, r.Source, err
	}
	at, err := remote.Parse(r.Source, "/")
	if err != nil {
		return in, r.Source, nil // the library says so, to those who may import there
	}
	if at.Kind != remote.Git {
		return in, "", &Problem{Status: 422, Code: "invalid", Detail: "a ref is one of a repository, and the source is none", Next: "leave ref out"}
	}
	at.Ref = r.Ref
	return in, at.String(), nil
}

func (h *Hub) importSkills(ctx context.Context, in *struct{ Body importRequest }) (*body[importedJSON], error) {
	p := account.FromContext(ctx)
	namespace, source, err := h.sourceOf(ctx, p, in.Body.SourceRequest)
	if err != nil {
		return nil, err
	}
	choice := library.Choice{Commit: in.Body.Commit, Dirs: in.Body.Dirs, Overwrite: in.Body.Overwrite}
	done, err := h.library.Import(ctx, p, namespace, source, choice)
	return imported(done, besideSource(source, err))
}

func (h *Hub) updateSkills(ctx context.Context, in *struct{ Body updateRequest }) (*body[importedJSON], error) {
	p := account.FromContext(ctx)
	namespace, err := h.kinds.Namespace(ctx, p, in.Body.Namespace)
	if err != nil {
		return nil, err
	}
	done, err := h.library.Update(ctx, p, namespace, in.Body.IDs...)
	return imported(done, err)
}

// imported is what was done, or why not all of it.
func imported(done *library.Imported, err error) (*body[importedJSON], error) {
	if err != nil {
		return nil, unfinished(done, err)
	}
	return answered(importedOf(done), nil)
}

func (h *Hub) getUpgrade(ctx context.Context, in *SkillPath) (*body[upgradeJSON], error) {
	u, err := h.library.Upgrade(ctx, account.FromContext(ctx), in.Skill, &skilldiff.Options{Texts: true})
	if err != nil {
		return nil, err
	}
	return answered(upgradeJSON{u.Commit, skillDiffOf(u.Diff)}, nil)
}
