package api

import (
	"context"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/library"
)

// UploadTimeout is the timeout for receiving an uploaded file, and for the whole
// operation.
const UploadTimeout = 5 * time.Minute

// AddUpload adds an operation that streams its request body, because the API
// library would read the body into memory. format describes the file.
func AddUpload[I, O any](s *Server, op huma.Operation, format string, f func(context.Context, *I) (*O, error)) {
	op.Middlewares = append(op.Middlewares, withUploadDeadline)
	AddFor(s, op, UploadTimeout, f)
	file := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary", Description: format}}
	form := &huma.Schema{Type: huma.TypeObject, Required: []string{"file"}, Properties: map[string]*huma.Schema{"file": file.Schema}}
	// An upload reads its body itself, so registration has not described it.
	s.OpenAPI().Paths[op.Path].Post.RequestBody = &huma.RequestBody{Required: true,
		Content: map[string]*huma.MediaType{"application/zip": file, "application/octet-stream": file, "multipart/form-data": {Schema: form}}}
}

// withUploadDeadline sets the read deadline for an upload.
func withUploadDeadline(ctx huma.Context, next func(huma.Context)) {
	_, w := humago.Unwrap(ctx)
	http.NewResponseController(w).SetReadDeadline(time.Now().Add(UploadTimeout)) // not supported by every server
	next(ctx)
}

// ReceiveUpload calls store with the uploaded file and its name, which may be "".
// The file is received while store reads it.
func ReceiveUpload(ctx context.Context, store func(name string, data io.Reader) error) error {
	r := RequestFrom(ctx).HTTP
	data, name, err := attachedFile(r)
	if err != nil {
		return err
	}
	in := &uploadReader{from: data}
	err = store(name, in)
	if in.failed != nil {
		return uploadProblem(in.failed)
	}
	if _, large := errors.AsType[*library.TooLargeError](err); large {
		io.Copy(io.Discard, r.Body) // clients read the response only after sending the whole body
	}
	return err
}

// attachedFile returns the file in a request body and its name.
func attachedFile(r *http.Request) (io.Reader, string, error) {
	kind, _, _ := mime.ParseMediaType(r.Header.Get("Content-Type"))
	switch kind {
	case "application/zip", "application/x-zip-compressed", "application/octet-stream":
		_, said, _ := mime.ParseMediaType(r.Header.Get("Content-Disposition"))
		return r.Body, said["filename"], nil
	case "multipart/form-data":
		return filePart(r)
	}
	return nil, "", NewProblem(415, "unsupported content type %.100q for an upload", "send it as Content-Type: application/zip, or as file of a form", kind)
}

// filePart returns the form part that contains the file, and its name.
func filePart(r *http.Request) (io.Reader, string, error) {
	form, err := r.MultipartReader()
	if err != nil {
		return nil, "", uploadProblem(err)
	}
	for {
		part, err := form.NextPart()
		if err == io.EOF {
			return nil, "", &Problem{Status: 422, Code: "invalid", Detail: "the form has no part named file", Errors: []Fault{{Where: "body.file", Message: "is needed"}},
				Next: "send it as file: curl -F file=@NAME.zip"}
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
func uploadProblem(err error) *Problem {
	if large, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return NewProblem(413, "the request is too large (limit %d bytes)", "send less", large.Limit)
	}
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return NewProblem(408, "upload timeout (limit %s)", "use a faster connection", UploadTimeout)
	}
	return NewProblem(400, "the body is incomplete or not a form", "send it again")
}
