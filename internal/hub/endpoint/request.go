package endpoint

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"reflect"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// A request is a request whose input is being read.
type request struct {
	*endpoint
	ctx    huma.Context
	in     reflect.Value
	path   *huma.PathBuffer // of the value that is being checked
	faults huma.ValidateResult
	status int           // of the response if there are faults
	buffer *bytes.Buffer // the body, or nil
}

// A refusal describes the response to a request that cannot be executed. Its status is
// 0 if the request can be executed.
type refusal struct {
	status int
	detail string
	faults []error
}

// refuse returns a refusal with the faults found so far.
func (r *request) refuse(status int, detail string) refusal {
	return refusal{status, detail, r.faults.Errors}
}

// One large request must not occupy memory forever.
const (
	maxPooledPath   = 2 << 10
	maxPooledFaults = 128
	maxPooledBuffer = 1 << 20
)

var (
	requests = sync.Pool{New: func() any { return &request{path: huma.NewPathBuffer(make([]byte, 0, 128), 0)} }}
	buffers  = sync.Pool{New: func() any { return new(bytes.Buffer) }}
)

// newRequest returns a request whose input is read into in.
func newRequest(e *endpoint, ctx huma.Context, in reflect.Value) *request {
	r := requests.Get().(*request)
	r.endpoint, r.ctx, r.in, r.status = e, ctx, in, http.StatusUnprocessableEntity
	return r
}

// release ends the use of a request and of the bytes of its body.
func (r *request) release() {
	r.freeBuffer()
	if cap(r.path.Bytes()) <= maxPooledPath && cap(r.faults.Errors) <= maxPooledFaults {
		clear(r.faults.Errors)
		r.faults.Reset()
		r.endpoint, r.ctx, r.in = nil, nil, reflect.Value{}
		requests.Put(r)
	}
}

func (r *request) freeBuffer() {
	if r.buffer != nil && r.buffer.Cap() <= maxPooledBuffer {
		r.buffer.Reset()
		buffers.Put(r.buffer)
	}
	r.buffer = nil
}

// read reads the input. It reports all faults of a request at once.
func (r *request) read() refusal {
	for i := range r.params {
		r.readParam(&r.params[i])
	}
	if r.body != nil || r.rawBody != nil {
		if refused := r.readBody(); refused.status != 0 {
			return refused
		}
	}
	for _, path := range r.resolvers {
		r.path.Reset()
		r.path.Push("body")
		r.resolve(r.in.FieldByIndex(r.body), path)
	}
	if len(r.faults.Errors) > 0 {
		return r.refuse(r.status, "validation failed")
	}
	return refusal{}
}

// readParam reads a parameter into its field.
func (r *request) readParam(p *param) {
	r.path.Reset()
	r.path.Push(p.location)
	r.path.Push(p.name)
	text := p.text(r.ctx)
	if text == "" {
		if p.required {
			r.faults.Add(r.path, "", "required "+p.location+" parameter is missing")
		}
		return
	}
	v, err := p.set(r.in.FieldByIndex(p.index), text, r.ctx)
	if err != nil {
		r.faults.Add(r.path, text, err.Error())
		return
	}
	r.validate(p.schema, v)
}

// validate reports where the value at the current path does not match a schema.
func (r *request) validate(s *huma.Schema, v any) {
	huma.Validate(r.api.OpenAPI().Components.Schemas, s, r.path, huma.ModeWriteToServer, v, &r.faults)
}

// readBody reads the body into its field.
func (r *request) readBody() refusal {
	if limit := r.op.BodyReadTimeout; limit > 0 {
		r.ctx.SetReadDeadline(time.Now().Add(limit)) // not supported by every server
	}
	r.buffer = buffers.Get().(*bytes.Buffer)
	if refused := r.fillBuffer(); refused.status != 0 {
		return refused
	}
	data := r.buffer.Bytes()
	switch {
	case len(data) == 0 && r.op.RequestBody.Required:
		return r.refuse(http.StatusBadRequest, "request body is required")
	case r.rawBody != nil:
		r.in.FieldByIndex(r.rawBody).SetBytes(data)
		return refusal{}
	case len(data) > 0:
		r.decode(data)
	}
	r.freeBuffer() // now, because the operation may take long
	return refusal{}
}

// fillBuffer reads the body into the buffer.
func (r *request) fillBuffer() refusal {
	body := r.ctx.BodyReader()
	if closer, ok := body.(io.Closer); ok {
		defer closer.Close()
	}
	most := r.op.MaxBodyBytes
	n, err := r.buffer.ReadFrom(io.LimitReader(body, most))
	if n == most {
		return r.refuse(http.StatusRequestEntityTooLarge, fmt.Sprintf("request body is too large limit=%d bytes", most))
	}
	if e, ok := errors.AsType[net.Error](err); ok && e.Timeout() {
		return r.refuse(http.StatusRequestTimeout, "request body read timeout")
	}
	if err != nil {
		return refusal{http.StatusInternalServerError, "cannot read request body", []error{err}}
	}
	return refusal{}
}

// decode decodes a JSON body into its field.
func (r *request) decode(data []byte) {
	kind := cmp.Or(r.ctx.Header("Content-Type"), jsonType)
	before := len(r.faults.Errors)
	addFault := func(err error) {
		r.faults.Errors = append(r.faults.Errors, &huma.ErrorDetail{Location: "body", Message: err.Error()})
	}
	var v any
	if err := r.api.Unmarshal(kind, data, &v); err != nil {
		r.status = http.StatusBadRequest
		if errors.Is(err, huma.ErrUnknownContentType) {
			r.status = http.StatusUnsupportedMediaType
		}
		addFault(err)
	} else {
		r.path.Reset()
		r.path.Push("body")
		r.validate(r.schema, v)
	}
	// Decode even an invalid body, so that resolvers report its other faults.
	err := r.api.Unmarshal(kind, data, r.in.FieldByIndex(r.body).Addr().Interface())
	if err != nil && len(r.faults.Errors) == before {
		addFault(err)
	}
}

// resolve adds the faults that the values at a path in v report.
func (r *request) resolve(v reflect.Value, path []int) {
	v = reflect.Indirect(v)
	switch {
	case !v.IsValid(): // a nil pointer
	case v.Kind() == reflect.Slice:
		for i := range v.Len() {
			r.path.PushIndex(i)
			r.resolve(v.Index(i), path)
			r.path.Pop()
		}
	case v.Kind() == reflect.Map:
		for _, key := range v.MapKeys() {
			value := reflect.New(v.Type().Elem()).Elem() // addressable, unlike a value in a map
			value.Set(v.MapIndex(key))
			r.path.Push(fmt.Sprint(key))
			r.resolve(value, path)
			r.path.Pop()
		}
	case len(path) == 0:
		r.faults.Errors = append(r.faults.Errors, v.Addr().Interface().(huma.ResolverWithPath).Resolve(r.ctx, r.path)...)
	default:
		f := v.Type().Field(path[0])
		if !f.Anonymous {
			r.path.Push(jsonName(f))
			defer r.path.Pop()
		}
		r.resolve(v.Field(path[0]), path[1:])
	}
}
