package hub

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

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/library"
)

// uploadTime is how long a package may take to arrive and to be checked.
const uploadTime = 5 * time.Minute

// PackageQuery says how an uploaded package is to be read.
type PackageQuery struct {
	FileName string `query:"file_name" maxLength:"255" doc:"What the archive is called, as pdf.zip, where neither Content-Disposition nor the part of a form says so"`
	Lenient  bool   `query:"lenient" doc:"Let the folder in the archive have another name than the archive"`
}

// skillCreated is a skill that was made, and where it is.
type skillCreated struct {
	Location string `header:"Location"`
	Body     skillDetail
}

// versionCreated is a version that was made, and where it is.
type versionCreated struct {
	Location string `header:"Location"`
	Body     SkillVersionJSON
}

func (h *Hub) uploads(api huma.API) {
	takesPackage(h, api, operation("create-skill", "POST", "/skills", "Upload a new skill as a ZIP. Its code runs once a reviewer approved it"), h.createSkill)
	takesPackage(h, api, operation("add-version", "POST", "/skills/{skill}/versions", "Upload another version of a skill, which becomes the current one"), h.addVersion)
}

// takesPackage adds an operation that reads the body of its request by itself, as it
// comes in: the API library would read it into memory first.
func takesPackage[I, O any](h *Hub, api huma.API, op huma.Operation, f func(context.Context, *I) (*O, error)) {
	op.Middlewares = append(op.Middlewares, untilUploaded)
	addFor(h, api, created(op), uploadTime, f)
	zip := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", Description: "A ZIP of one folder with a SKILL.md, or of its files alone"}}
	form := &huma.Schema{Type: huma.TypeObject, Required: []string{"file"}, Properties: map[string]*huma.Schema{"file": zip.Schema}}
	// Said after the operation was added, as it would be read otherwise.
	api.OpenAPI().Paths[op.Path].Post.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{"application/zip": zip, "application/octet-stream": zip, "multipart/form-data": {Schema: form}}}
}

// untilUploaded bounds the reading of a body, which nothing else does.
func untilUploaded(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(uploadTime)) // not with every server
	next(ctx)
}

func (h *Hub) createSkill(ctx context.Context, in *struct {
	PackageQuery
	Namespace string `query:"namespace" maxLength:"100" doc:"As in lists; without, your own"`
}) (*skillCreated, error) {
	p := account.FromContext(ctx)
	n, err := h.kinds.Namespace(ctx, p, in.Namespace)
	if err != nil {
		return nil, err
	}
	var s *library.Skill
	err = receive(ctx, in.PackageQuery, func(pkg library.Package) (err error) {
		s, err = h.library.Upload(ctx, p, n, pkg)
		return err
	})
	if err != nil {
		return nil, taken(err)
	}
	detail, err := h.skillDetail(ctx, p, s)
	if err != nil {
		return nil, err
	}
	return &skillCreated{base + "/skills/" + s.ID, detail}, nil
}

func (h *Hub) addVersion(ctx context.Context, in *struct {
	PackageQuery
	SkillPath
}) (*versionCreated, error) {
	var v *library.Version
	err := receive(ctx, in.PackageQuery, func(pkg library.Package) (err error) {
		v, err = h.library.AddVersion(ctx, account.FromContext(ctx), in.Skill, pkg)
		return err
	})
	if err != nil {
		return nil, in.already(err)
	}
	return &versionCreated{fmt.Sprintf("%s/skills/%s/versions/%d", base, v.SkillID, v.Number), skillVersionOf(v)}, nil
}

// receive calls keep with the package that a request brings, while it comes in.
func receive(ctx context.Context, q PackageQuery, keep func(library.Package) error) error {
	r := visitOf(ctx).request
	data, name, err := attached(r)
	if err != nil {
		return err
	}
	pkg := library.Package{FileName: cmp.Or(q.FileName, name), AnyFolder: q.Lenient}
	if pkg.FileName == "" && !q.Lenient {
		return &Problem{Status: 422, Code: "invalid", Detail: "it is not said what the archive is called, and so not what its folder has to be",
			Next: "send file_name=NAME.zip, or lenient=true", Errors: []Fault{{"query.file_name", "is needed"}}}
	}
	in := &incoming{from: data}
	pkg.Data = in
	err = keep(pkg)
	if in.failed != nil {
		return cutShort(in.failed)
	}
	if _, large := errors.AsType[*library.TooLargeError](err); large {
		io.Copy(io.Discard, r.Body) // who is still sending does not read the answer yet
	}
	return err
}

// attached is the package in the body of a request, and what it is called there.
func attached(r *http.Request) (io.Reader, string, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/zip", "application/x-zip-compressed", "application/octet-stream":
		_, said, _ := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		return r.Body, said["filename"], nil
	case "multipart/form-data":
		return filePart(r)
	}
	return nil, "", status(415, "a package is not sent as %.100q", "send it as Content-Type: application/zip, or as file of a form", kind)
}

// filePart is the part of a form that has the package.
func filePart(r *http.Request) (io.Reader, string, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, "", cutShort(err)
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return nil, "", &Problem{Status: 422, Code: "invalid", Detail: "the form has no part that is named file", Errors: []Fault{{"body.file", "is needed"}},
				Next: "send the package as file: curl -F file=@NAME.zip"}
		}
		if err != nil {
			return nil, "", cutShort(err)
		}
		if part.FormName() == "file" {
			return part, part.FileName(), nil
		}
	}
}

// incoming is what is read of a request, and why that ended where it should not have.
type incoming struct {
	from   io.Reader
	failed error
}

func (in *incoming) Read(p []byte) (int, error) {
	n, err := in.from.Read(p)
	if err != nil && err != io.EOF {
		in.failed = err
	}
	return n, err
}

// cutShort is why a body could not be read to its end.
func cutShort(err error) *Problem {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return status(413, "the request has more than %d bytes", "send less", large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return status(408, "the package took longer than %s to arrive", "send it by a faster line", uploadTime)
	}
	return status(400, "the body ends in the middle, or is no form", "send it again")
}
