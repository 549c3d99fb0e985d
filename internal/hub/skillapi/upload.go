package skillapi

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// uploadTime is the timeout for receiving and checking a package.
const uploadTime = 5 * time.Minute

// PackageQuery holds the query parameters of an upload.
type PackageQuery struct {
	FileName string `query:"file_name" maxLength:"255" doc:"Name of the archive, for example pdf.zip, if neither Content-Disposition nor the form has it"`
	Lenient  bool   `query:"lenient" doc:"Accept packages that break the specification: the folder may have another name than the archive"`
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
	addUploadOperation(h.Server, api.Operation("create-skill", "POST", "/skills", "Upload a new skill as a ZIP. Its code runs after a review"), h.createSkill)
	addUploadOperation(h.Server, api.Operation("add-version", "POST", "/skills/{skill}/versions", "Upload a version of a skill. It becomes the current one at once if it has no code to review, else when it is approved"), h.addVersion)
}

// addUploadOperation adds an operation that streams its request body, because
// the API library would read the body into memory.
func addUploadOperation[I, O any](s *api.Server, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	op.Middlewares = append(op.Middlewares, withUploadLimit)
	api.AddFor(s, api.WithCreated(op), uploadTime, f)
	zip := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", Description: "A ZIP of one folder with a SKILL.md, or of its files alone"}}
	form := &huma.Schema{Type: huma.TypeObject, Required: []string{"file"}, Properties: map[string]*huma.Schema{"file": zip.Schema}}
	// Set after registration. Otherwise the API library would read the body.
	s.OpenAPI().Paths[op.Path].Post.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{"application/zip": zip, "application/octet-stream": zip, "multipart/form-data": {Schema: form}}}
}

// withUploadLimit sets the read deadline for an upload.
func withUploadLimit(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // not supported by every server
	next(ctx)
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
}) (*versionCreated, error) {
	var v *library.Version
	err := receivePackage(ctx, in.PackageQuery, func(pkg library.Package) (err error) {
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
	r := api.RequestFrom(ctx).HTTP
	data, name, err := attachedPackage(r)
	if err != nil {
		return err
	}
	pkg := library.Package{FileName: cmp.Or(q.FileName, name), AnyFolder: q.Lenient}
	if pkg.FileName == "" && !q.Lenient {
		return &api.Problem{Status: 422, Code: "invalid", Detail: "the name of the archive, which its folder must match, is missing",
			Next: "send file_name=NAME.zip, or lenient=true", Errors: []api.Fault{{Where: "query.file_name", Message: "is needed"}}}
	}
	in := &uploadReader{from: data}
	pkg.Data = in
	err = store(pkg)
	if in.failed != nil {
		return uploadProblem(in.failed)
	}
	if _, large := errors.AsType[*library.TooLargeError](err); large {
		io.Copy(io.Discard, r.Body) // clients read the response only after sending the whole body
	}
	return err
}

// attachedPackage returns the package in a request body and its file name.
func attachedPackage(r *http.Request) (io.Reader, string, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/zip", "application/x-zip-compressed", "application/octet-stream":
		_, said, _ := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		return r.Body, said["filename"], nil
	case "multipart/form-data":
		return filePart(r)
	}
	return nil, "", api.NewProblem(415, "unsupported content type %.100q for a package", "send it as Content-Type: application/zip, or as file of a form", kind)
}

// filePart returns the form part that contains the package, and its file name.
func filePart(r *http.Request) (io.Reader, string, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, "", uploadProblem(err)
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return nil, "", &api.Problem{Status: 422, Code: "invalid", Detail: "the form has no part named file", Errors: []api.Fault{{Where: "body.file", Message: "is needed"}},
				Next: "send the package as file: curl -F file=@NAME.zip"}
		}
		if err != nil {
			return nil, "", uploadProblem(err)
		}
		if part.FormName() == "file" {
			return part, part.FileName(), nil
		}
	}
}

// uploadReader reads a request body and remembers why reading failed.
type uploadReader struct {
	from   io.Reader
	failed error
}

func (in *uploadReader) Read(p []byte) (int, error) {
	n, err := in.from.Read(p)
	if err != nil && err != io.EOF {
		in.failed = err
	}
	return n, err
}

// uploadProblem returns the problem for an error that occurred while reading a
// request body.
func uploadProblem(err error) *api.Problem {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return api.NewProblem(413, "the request is too large (limit %d bytes)", "send less", large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return api.NewProblem(408, "upload timeout (limit %s)", "use a faster connection", uploadTime)
	}
	return api.NewProblem(400, "the body is incomplete or not a form", "send it again")
}

// nameTakenProblem replaces [library.ErrExists] with a problem that says how to
// upload a skill whose name is taken. It returns other errors unchanged.
func nameTakenProblem(err error) error {
	if !errors.Is(err, library.ErrExists) {
		return err
	}
	return &api.Problem{Status: 409, Code: "exists", Detail: "a skill with this name already exists",
		Next: "to add a version to it: POST " + api.Prefix + "/skills/{skill}/versions, with its ID from GET " + api.Prefix + "/skills; otherwise give the skill another name"}
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
