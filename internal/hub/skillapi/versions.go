package skillapi

import (
	"context"
	"strconv"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/skill"
)

// VersionPath identifies a version of a skill.
type VersionPath struct {
	api.SkillPath
	Version string `path:"version" pattern:"^(current|[1-9][0-9]{0,17})$" patternDescription:"a number, or current" doc:"Number of a version, or current"`
}

// number returns the version number, or 0 for the current version.
func (v VersionPath) number() int64 { return versionNumber(v.Version) }

// versionNumber parses the version in a [VersionPath]. It returns 0 if the version
// is not a number.
func versionNumber(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// manifestJSON lists a version's files.
type manifestJSON struct {
	Digest string             `json:"digest"`
	Size   int64              `json:"size" doc:"Total size in bytes"`
	Files  []manifestFileJSON `json:"files" nullable:"false"`
}

type manifestFileJSON struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Script bool   `json:"script" doc:"Whether it is executable"`
}

func (h *Handlers) versionsAPI() {
	api.Add(h.Server, api.Operation("list-versions", "GET", "/skills/{skill}/versions", "List the versions of a skill, newest first"), h.listVersions)
	api.Add(h.Server, api.Operation("get-version", "GET", "/skills/{skill}/versions/{version}", "Get a version of a skill"), h.getVersion)
	api.Add(h.Server, api.Operation("delete-version", "DELETE", "/skills/{skill}/versions/{version}", "Delete a version that is neither current nor referenced by its digest, or a rejected one with the references to it"), h.deleteVersion)
	api.Add(h.Server, api.Operation("use-version", "POST", "/skills/{skill}/versions/{version}/use", "Make a version the current one. Its code must be approved"), h.useVersion)
	api.Add(h.Server, api.Operation("get-manifest", "GET", "/skills/{skill}/versions/{version}/manifest", "List the files of a version with their hashes"), h.getManifest)
	api.Add(h.Server, api.Operation("get-findings", "GET", "/skills/{skill}/versions/{version}/findings", "Get the findings of the scan of a version; advice only"), h.getFindings)
	api.Add(h.Server, api.Operation("get-diff", "GET", "/skills/{skill}/versions/{version}/diff", "Compare two versions"), h.getDiff)
	h.addVersionFiles()
}

func (h *Handlers) listVersions(ctx context.Context, in *struct {
	api.SkillPath
	After string `query:"after" pattern:"^[1-9][0-9]{0,17}$" patternDescription:"next of a page" doc:"Value of next on the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of items"`
}) (*api.Body[api.ListBody[SkillVersion]], error) {
	versions, err := h.Library.Versions(ctx, account.FromContext(ctx), in.Skill, versionNumber(in.After), in.Limit)
	next := ""
	if n := len(versions); n == in.Limit && versions[n-1].Number > 1 {
		next = strconv.FormatInt(versions[n-1].Number, 10)
	}
	return api.PageOf(versions, next, err, newSkillVersion)
}

func (h *Handlers) getVersion(ctx context.Context, in *VersionPath) (*api.Body[SkillVersion], error) {
	v, err := h.Library.Version(ctx, account.FromContext(ctx), in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	return api.BodyOf(newSkillVersion(v), nil)
}

func (h *Handlers) deleteVersion(ctx context.Context, in *struct {
	VersionPath
	Unbind bool `query:"unbind" doc:"Remove references to a rejected version first; an agent then no longer names the skill"`
}) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	number, err := h.resolveNumber(ctx, p, &in.VersionPath)
	if err != nil {
		return nil, err
	}
	return nil, h.Library.DeleteVersion(ctx, p, in.Skill, number, in.Unbind)
}

func (h *Handlers) useVersion(ctx context.Context, in *VersionPath) (*api.NoBody, error) {
	p := account.FromContext(ctx)
	number, err := h.resolveNumber(ctx, p, in)
	if err != nil {
		return nil, err
	}
	return nil, h.Library.SetCurrentVersion(ctx, p, in.Skill, number)
}

// resolveNumber returns the version number, looking up the current one if needed.
func (h *Handlers) resolveNumber(ctx context.Context, p account.Principal, in *VersionPath) (int64, error) {
	if n := in.number(); n != 0 {
		return n, nil
	}
	v, err := h.Library.Version(ctx, p, in.Skill, 0)
	if err != nil {
		return 0, err
	}
	return v.Number, nil
}

func (h *Handlers) getManifest(ctx context.Context, in *VersionPath) (*api.Body[manifestJSON], error) {
	files, err := h.Library.Manifest(ctx, account.FromContext(ctx), in.Skill, in.number())
	if err != nil {
		return nil, err
	}
	return api.BodyOf(newManifestJSON(files), nil)
}

func newManifestJSON(files skill.Manifest) manifestJSON {
	out := manifestJSON{Digest: files.Digest(), Size: files.Size(), Files: make([]manifestFileJSON, len(files))}
	for i, f := range files {
		out.Files[i] = manifestFileJSON{f.Path, f.Size, f.SHA256, f.Script}
	}
	return out
}
