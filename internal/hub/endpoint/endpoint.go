// Package endpoint serves operations of an HTTP API: it describes them in the OpenAPI
// document, reads and validates their requests, and writes their responses.
//
// It does what the hub's operations need of [huma.Register], and uses the exported parts of that library for
// schemas, validation and formats. But huma.Register is generic and large, and the
// program would contain it once for each operation. Here types are values, and the
// program contains the code once.
//
// The input of an operation is a struct. Its fields are parameters with one of the tags
// path, query and header; and Body, which is decoded from JSON, or RawBody, which holds
// the bytes of the body. A parameter is a string, a bool, an int, a time, or a []string.
// Values in Body that implement [huma.ResolverWithPath] report their own faults, always
// with status 422. Unlike huma.Register, this package does not replace an explicit zero
// value of a parameter by its default.
//
// The output is a struct too. Its fields are response headers, which are strings or
// have a method String; and Body, which is encoded as JSON, or is a function that
// writes the response.
package endpoint

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// A Call executes an operation. in is a pointer to the input. out is a pointer to the
// output, or nil if the response is only a status.
type Call func(ctx context.Context, in any) (out any, err error)

// An endpoint is a registered operation.
type endpoint struct {
	input
	output
	api  huma.API
	op   *huma.Operation
	call Call
}

// Register adds an operation to an API. It panics if it does not support an option of
// the operation or a field of a type.
func Register(api huma.API, op huma.Operation, in, out reflect.Type, call Call) {
	if len(op.Errors) > 0 || op.Hidden || op.SkipValidateBody || op.SkipValidateParams || op.RejectUnknownQueryParameters || op.BodyReadTimeout < 0 {
		panic(fmt.Sprintf("operation %s has an unsupported option", op.OperationID))
	}
	if op.Responses == nil {
		op.Responses = map[string]*huma.Response{}
	}
	schemas := api.OpenAPI().Components.Schemas
	e := &endpoint{newInput(schemas, &op, in), newOutput(schemas, &op, out), api, &op, call}
	problem := schemas.Schema(reflect.TypeFor[huma.ErrorModel](), true, "")
	if len(op.Responses) < 2 { // more responses are a complete description
		op.Responses["default"] = &huma.Response{Description: "Error", Content: content("application/problem+json", problem)}
	}
	api.OpenAPI().AddOperation(&op)
	api.Adapter().Handle(&op, api.Middlewares().Handler(op.Middlewares.Handler(e.serve)))
}

// fields returns the fields of a struct and of the structs that it embeds. An embedded
// struct may have the name of one of its fields.
func fields(t reflect.Type) []reflect.StructField {
	var all []reflect.StructField
	for i := range t.NumField() {
		f := t.Field(i)
		if !f.Anonymous || f.Type.Kind() != reflect.Struct {
			all = append(all, f)
			continue
		}
		for _, inner := range fields(f.Type) {
			inner.Index = append([]int{i}, inner.Index...)
			all = append(all, inner)
		}
	}
	return all
}

const jsonType = "application/json"

func content(kind string, schema *huma.Schema) map[string]*huma.MediaType {
	return map[string]*huma.MediaType{kind: {Schema: schema}}
}

// schemaOf returns the schema of a field. If its type has no name, the schema is named
// after the struct, or after the operation if the struct has no name either.
func schemaOf(schemas huma.Registry, parent reflect.Type, f reflect.StructField, otherwise string) *huma.Schema {
	if parent.Name() != "" {
		return huma.SchemaFromField(schemas, f, parent.Name()+f.Name)
	}
	return huma.SchemaFromField(schemas, f, otherwise)
}

func jsonName(f reflect.StructField) string {
	if tag := f.Tag.Get("json"); tag != "" {
		name, _, _ := strings.Cut(tag, ",")
		return name
	}
	return strings.ToLower(f.Name)
}

// serve answers a request.
func (e *endpoint) serve(ctx huma.Context) {
	in := reflect.New(e.in)
	r := newRequest(e, ctx, in.Elem())
	defer r.release()
	if refused := r.read(); refused.status != 0 {
		huma.WriteErr(e.api, ctx, refused.status, refused.detail, refused.faults...)
		return
	}
	out, err := e.call(ctx.Context(), in.Interface())
	switch {
	case err != nil:
		e.writeError(ctx, err)
	case out == nil:
		ctx.SetStatus(e.op.DefaultStatus)
	default:
		e.writeOutput(ctx, reflect.ValueOf(out).Elem())
	}
}
