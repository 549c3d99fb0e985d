package skillapi

import (
	"context"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/remote"
	"github.com/loadout-dev/loadout/internal/skilldiff"
	"github.com/loadout-dev/loadout/internal/store"
)

// ImportTimeout is the timeout for operations that download skills.
const ImportTimeout = 5 * time.Minute

// checkTimeout is the timeout for checking a source, which may wait for imports.
const checkTimeout = time.Minute

// SourceRequest names a source and the namespace to import its skills into.
type SourceRequest struct {
	Source    string `json:"source" minLength:"1" maxLength:"4096" doc:"owner/repo, owner/repo/dir@ref, https://host/repo.git//dir@ref, https://host/x.zip, or https://host of a site that publishes skills"`
	Namespace string `json:"namespace,omitempty" maxLength:"100" doc:"Target: public, the name of a group, user:ID or group:ID; default your own"`
	Ref       string `json:"ref,omitempty" maxLength:"250" doc:"Branch, tag or commit of a repository, instead of the one in source"`
}

type importRequest struct {
	SourceRequest
	Commit    string   `json:"commit,omitempty" maxLength:"64" doc:"Commit that was inspected; default the current one"`
	Dirs      []string `json:"dirs,omitempty" nullable:"false" maxItems:"2000" doc:"Directories of the skills to import; default all"`
	Overwrite []string `json:"overwrite,omitempty" nullable:"false" maxItems:"2000" doc:"Names of existing skills that get a new version"`
	Downgrade bool     `json:"downgrade,omitempty" doc:"Also import signed skills that are older than an existing version, or signed by another key"`
}

type updateRequest struct {
	Namespace string   `json:"namespace,omitempty" maxLength:"100" doc:"Default your own"`
	IDs       []string `json:"ids,omitempty" nullable:"false" maxItems:"1000" doc:"Skills to update; default all that were imported"`
	Downgrade bool     `json:"downgrade,omitempty" doc:"Also update to signed skills that are older than an existing version, or signed by another key"`
}

// upgradeJSON describes what updating a skill would change.
type upgradeJSON struct {
	Commit string        `json:"commit,omitempty" doc:"Compared commit of the source"`
	Diff   skillDiffJSON `json:"diff" doc:"Diff of the current version and the source"`
}

func (h *Handlers) importsAPI() {
	api.AddFor(h.Server, api.WithProgress(h.Server, api.Operation("look-at-source", "POST", "/skills/import/look", "List the skills of a source, and which of them a namespace has")), ImportTimeout, h.inspectSource)
	api.AddFor(h.Server, api.WithProgress(h.Server, api.Operation("import-skills", "POST", "/skills/import", "Import skills from a source")), ImportTimeout, h.importSkills)
	api.AddFor(h.Server, api.Operation("update-skills", "POST", "/skills/update", "Update imported skills from their sources"), ImportTimeout, h.updateSkills)
	api.AddFor(h.Server, api.Operation("get-upgrade", "GET", "/skills/{skill}/upgrade", "Compare an imported skill with its source"), ImportTimeout, h.getUpgrade)
	api.AddFor(h.Server, api.Operation("check-source", "POST", "/skills/{skill}/check", "Check now whether the source of an imported skill can be read and has a newer commit, at most once per minute"), checkTimeout, h.checkSource)
}

func (h *Handlers) inspectSource(ctx context.Context, in *struct{ Body SourceRequest }) (*api.Body[library.SourceListing], error) {
	p := account.FromContext(ctx)
	namespace, source, err := h.resolveSource(ctx, p, in.Body)
	if err != nil {
		return nil, err
	}
	offer, err := h.Library.Inspect(ctx, p, namespace, source)
	if err != nil {
		return nil, api.WithSource(source, err)
	}
	return api.BodyOf(*offer, nil)
}

// resolveSource returns the namespace of a request, and the source with its ref.
func (h *Handlers) resolveSource(ctx context.Context, p account.Principal, r SourceRequest) (store.Namespace, string, error) {
	in, err := h.Agents.ResolveNamespace(ctx, p, r.Namespace)
	if err != nil {
		return in, "", err
	}
	source, err := r.WithRef()
	return in, source, err
}

// WithRef returns the source with the ref of the request. It returns a source that
// cannot be parsed unchanged: the library reports it to users who may import.
func (r SourceRequest) WithRef() (string, error) {
	if r.Ref == "" {
		return r.Source, nil
	}
	at, err := remote.Parse(r.Source, "/")
	if err != nil {
		return r.Source, nil
	}
	if at.Kind != remote.Git {
		return "", &api.Problem{Status: 422, Code: "invalid", Detail: "ref needs a repository, but the source is not one", Next: "omit ref"}
	}
	at.Ref = r.Ref
	return at.String(), nil
}

func (h *Handlers) importSkills(ctx context.Context, in *struct{ Body importRequest }) (*api.Body[library.ImportResult], error) {
	p := account.FromContext(ctx)
	namespace, source, err := h.resolveSource(ctx, p, in.Body.SourceRequest)
	if err != nil {
		return nil, err
	}
	choice := library.ImportSelection{Commit: in.Body.Commit, Dirs: in.Body.Dirs, Overwrite: in.Body.Overwrite, Downgrade: in.Body.Downgrade}
	done, err := h.Library.Import(ctx, p, namespace, source, choice)
	return importResult(done, api.WithSource(source, err))
}

func (h *Handlers) updateSkills(ctx context.Context, in *struct{ Body updateRequest }) (*api.Body[library.ImportResult], error) {
	p := account.FromContext(ctx)
	namespace, err := h.Agents.ResolveNamespace(ctx, p, in.Body.Namespace)
	if err != nil {
		return nil, err
	}
	done, err := h.Library.Update(ctx, p, namespace, library.UpdateSelection{IDs: in.Body.IDs, Downgrade: in.Body.Downgrade})
	return importResult(done, err)
}

// importResult returns the response for a complete or partial import.
func importResult(done *library.ImportResult, err error) (*api.Body[library.ImportResult], error) {
	if err != nil {
		return nil, api.PartialImport(done, err)
	}
	return api.BodyOf(*done, nil)
}

func (h *Handlers) getUpgrade(ctx context.Context, in *api.SkillPath) (*api.Body[upgradeJSON], error) {
	u, err := h.Library.PreviewUpdate(ctx, account.FromContext(ctx), in.Skill, &skilldiff.Options{Texts: true})
	if err != nil {
		return nil, err
	}
	return api.BodyOf(upgradeJSON{u.Commit, newSkillDiffJSON(u.Diff)}, nil)
}

func (h *Handlers) checkSource(ctx context.Context, in *api.SkillPath) (*api.Body[library.SourceStatus], error) {
	s, err := h.Library.CheckSource(ctx, account.FromContext(ctx), in.Skill)
	if err != nil {
		return nil, err
	}
	return api.BodyOf(*s, nil)
}
