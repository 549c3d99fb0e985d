package skillapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// packageFormat describes the file of an upload.
const packageFormat = "A ZIP of one folder with a SKILL.md, or of its files alone"

// PackageQuery holds the query parameters of an upload.
type PackageQuery struct {
	FileName  string `query:"file_name" maxLength:"255" doc:"Name of the archive, for example pdf.zip, if neither Content-Disposition nor the form has it"`
	Changelog string `query:"changelog" maxLength:"200" doc:"What changed, in one line"`
	Lenient   bool   `query:"lenient" doc:"Accept packages that break the specification: the folder may have another name than the archive"`
}

// skillCreated is the response after creating a skill.
type skillCreated struct {
	Location string `header:"Location"`
	Body     skillDetail
}

// versionCreated is the response after adding a version.
type versionCreated struct {
	Location string `header:"Location"`
	Body     SkillVersion
}

func (h *Handlers) addUploads() {
	api.AddUpload(h.Server, api.WithCreated(api.Operation("create-skill", "POST", "/skills", "Upload a new skill as a ZIP. Its code runs after a review")), packageFormat, h.createSkill)
	api.AddUpload(h.Server, api.WithCreated(api.Operation("add-version", "POST", "/skills/{skill}/versions", "Upload a version of a skill. It becomes the current one at once if it has no code to review, else when it is approved")), packageFormat, h.addVersion)
}

func (h *Handlers) createSkill(ctx context.Context, in *struct {
	PackageQuery
	Namespace string `query:"namespace" maxLength:"100" doc:"Namespace as in lists; default your own"`
}) (*skillCreated, error) {
	p := account.FromContext(ctx)
	n, err := h.Agents.ResolveNamespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	var s *library.Skill
	err = receivePackage(ctx, in.PackageQuery, func(pkg library.Package) (err error) {
		s, err = h.Library.Upload(ctx, p, n, pkg)
		return err
	})
	if err != nil {
		return nil, nameTakenProblem(err)
	}
	detail, err := h.skillDetail(ctx, p, s)
	if err != nil {
		return nil, err
	}
	return &skillCreated{api.Prefix + "/skills/" + s.ID, detail}, nil
}

func (h *Handlers) addVersion(ctx context.Context, in *struct {
	PackageQuery
	api.SkillPath
	Base int64 `query:"base" minimum:"1" doc:"The newest version that you know. The upload fails with 409 (changed) if there is a newer one"`
}) (*versionCreated, error) {
	var v *library.Version
	err := receivePackage(ctx, in.PackageQuery, func(pkg library.Package) (err error) {
		pkg.Base = in.Base
		v, err = h.Library.AddVersion(ctx, account.FromContext(ctx), in.Skill, pkg)
		return err
	})
	if err != nil {
		return nil, versionExistsProblem(in.SkillPath, err)
	}
	return &versionCreated{fmt.Sprintf("%s/skills/%s/versions/%d", api.Prefix, v.SkillID, v.Number), newSkillVersion(v)}, nil
}

// receivePackage calls store with the uploaded package. The package is received
// while store reads it.
func receivePackage(ctx context.Context, q PackageQuery, store func(library.Package) error) error {
	return api.ReceiveUpload(ctx, func(name string, data io.Reader) error {
		pkg := library.Package{FileName: cmp.Or(q.FileName, name), AnyFolder: q.Lenient, Changelog: q.Changelog, Data: data}
		if pkg.FileName == "" && !q.Lenient {
			return &api.Problem{Status: 422, Code: "invalid", Detail: "the name of the archive, which its folder must match, is missing",
				Next: "send file_name=NAME.zip, or lenient=true", Errors: []api.Fault{{Where: "query.file_name", Message: "is needed"}}}
		}
		return store(pkg)
	})
}

// nameTakenProblem replaces [library.ErrExists] with a problem that says how to
// upload a skill whose name is taken. It returns other errors unchanged.
func nameTakenProblem(err error) error {
	if !errors.Is(err, library.ErrExists) {
		return err
	}
	p := &api.Problem{Status: 409, Code: "exists", Detail: "a skill with this name already exists",
		Next: "to add a version to it: POST " + api.Prefix + "/skills/{skill}/versions, with its ID from taken; otherwise give the skill another name"}
	if e, ok := errors.AsType[*library.ExistsError](err); ok {
		p.Taken = &api.Taken{ID: e.Existing.ID, MayAdd: e.Existing.CanAddVersion, Same: e.Existing.Same}
	}
	return p
}

// versionExistsProblem replaces [library.ErrExists] with a problem that says
// how to use the existing version. It returns other errors unchanged.
func versionExistsProblem(p api.SkillPath, err error) error {
	if !errors.Is(err, library.ErrExists) {
		return err
	}
	return &api.Problem{Status: 409, Code: "exists", Detail: "a version with these files exists already",
		Next: fmt.Sprintf("to go back to that version: POST %s/skills/%s/versions/{version}/use", api.Prefix, p.Skill)}
}
