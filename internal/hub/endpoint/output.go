package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strconv"

	"github.com/danielgtaylor/huma/v2"
)

// output describes how the output of an operation is written.
type output struct {
	headers   []header
	bodyField []int  // index of the field Body; nil if there is none
	status    string // of a response without errors
}

// A header is a field of an output that is written as a response header.
type header struct {
	index []int
	name  string
}

var (
	streamType   = reflect.TypeFor[func(huma.Context)]()
	bytesType    = reflect.TypeFor[[]byte]()
	stringType   = reflect.TypeFor[string]()
	stringerType = reflect.TypeFor[fmt.Stringer]()
)

// newOutput returns the description of an output type, and adds it to the operation.
func newOutput(schemas huma.Registry, op *huma.Operation, t reflect.Type) output {
	var out output
	var headers []reflect.StructField
	for _, f := range fields(t) {
		switch {
		case !f.IsExported():
		case f.Name == "Body":
			out.bodyField = f.Index
			op.DefaultStatus = cmp.Or(op.DefaultStatus, http.StatusOK)
			describeResponse(schemas, op, t, f)
		default:
			out.headers = append(out.headers, header{f.Index, cmp.Or(f.Tag.Get("header"), f.Name)})
			headers = append(headers, f)
		}
	}
	if op.DefaultStatus == 0 {
		op.DefaultStatus = http.StatusNoContent
	}
	out.status = strconv.Itoa(op.DefaultStatus)
	for i, f := range headers {
		describeHeader(schemas, op, t, f, out.headers[i].name)
	}
	describedResponse(op)
	return out
}

// describedResponse returns the description of the response without errors, and adds
// it to the operation if it is missing.
func describedResponse(op *huma.Operation) *huma.Response {
	status := strconv.Itoa(op.DefaultStatus)
	if op.Responses[status] == nil {
		op.Responses[status] = &huma.Response{}
	}
	r := op.Responses[status]
	r.Description = cmp.Or(r.Description, http.StatusText(op.DefaultStatus))
	if r.Headers == nil {
		r.Headers = map[string]*huma.Param{}
	}
	return r
}

// describeResponse adds the body in field f of an output type to an operation.
func describeResponse(schemas huma.Registry, op *huma.Operation, out reflect.Type, f reflect.StructField) {
	if f.Type == bytesType || f.Type.Kind() == reflect.Func && f.Type != streamType {
		panic(fmt.Sprintf("the response %s of %s cannot be written", f.Type, op.OperationID))
	}
	r := describedResponse(op)
	if f.Type == streamType {
		return
	}
	schema := schemaOf(schemas, out, f, op.OperationID+"Response")
	if len(r.Content) == 0 {
		r.Content = content(jsonType, nil)
	}
	if m := r.Content[jsonType]; m != nil && m.Schema == nil {
		m.Schema = schema
	}
}

// describeHeader adds the header in field f of an output type to an operation.
func describeHeader(schemas huma.Registry, op *huma.Operation, out reflect.Type, f reflect.StructField, name string) {
	if reflect.PointerTo(f.Type).Implements(stringerType) && f.Type != timeType {
		f.Type = stringType
	}
	if f.Type.Kind() != reflect.String || name == "Content-Type" {
		panic(fmt.Sprintf("field %s of %s cannot be a header", f.Name, out))
	}
	describedResponse(op).Headers[name] = &huma.Param{Schema: schemaOf(schemas, out, f, op.OperationID+name)}
}

// writeOutput writes the response of an operation.
func (e *endpoint) writeOutput(ctx huma.Context, out reflect.Value) {
	for _, h := range e.headers {
		v := out.FieldByIndex(h.index)
		if v.Kind() != reflect.String {
			ctx.SetHeader(h.name, v.Addr().Interface().(fmt.Stringer).String())
		} else if v.Len() > 0 {
			ctx.SetHeader(h.name, v.String())
		}
	}
	if e.bodyField == nil {
		ctx.SetStatus(e.op.DefaultStatus)
		return
	}
	body := out.FieldByIndex(e.bodyField).Interface()
	if write, ok := body.(func(huma.Context)); ok {
		write(ctx)
		return
	}
	e.writeBody(ctx, e.op.DefaultStatus, e.status, body)
}

// writeError writes the response for an error of an operation.
func (e *endpoint) writeError(ctx huma.Context, err error) {
	if h, ok := errors.AsType[huma.HeadersError](err); ok {
		for name, values := range h.GetHeaders() {
			for _, v := range values {
				ctx.AppendHeader(name, v)
			}
		}
	}
	s, ok := errors.AsType[huma.StatusError](err)
	if !ok {
		s = huma.NewErrorWithContext(ctx, http.StatusInternalServerError, "unexpected error occurred", err)
	}
	e.writeBody(ctx, s.GetStatus(), strconv.Itoa(s.GetStatus()), s)
}

// writeBody writes a response with the given body. text is the status as text. It
// panics if the body cannot be encoded.
func (e *endpoint) writeBody(ctx huma.Context, status int, text string, body any) {
	kind, err := e.api.Negotiate(ctx.Header("Accept"))
	if f, ok := body.(huma.ContentTypeFilter); ok {
		kind = f.ContentType(kind)
	}
	ctx.SetHeader("Content-Type", kind)
	if err == nil {
		body, err = e.api.Transform(ctx, text, body)
	}
	ctx.SetStatus(status)
	if err == nil && status != http.StatusNoContent && status != http.StatusNotModified {
		err = e.api.Marshal(ctx.BodyWriter(), kind, body)
	}
	if err != nil {
		ctx.BodyWriter().Write([]byte("error marshaling response"))
		panic(fmt.Errorf("error marshaling response for %s %s %d: %w", e.op.Method, e.op.Path, status, err))
	}
}
