package endpoint

import (
	"cmp"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
)

// input describes how the input of an operation is read.
type input struct {
	in        reflect.Type
	params    []param
	body      []int        // index of the field Body; nil if there is none
	rawBody   []int        // index of the field RawBody; nil if there is none
	schema    *huma.Schema // of Body
	resolvers [][]int      // paths in Body to values that report their faults
}

// newInput returns the description of an input type, and adds it to the operation.
func newInput(schemas huma.Registry, op *huma.Operation, t reflect.Type) input {
	in := input{in: t}
	refuseResolver(t)
	for _, f := range fields(t) {
		switch {
		case !f.IsExported():
		case f.Name == "Body":
			in.body, in.resolvers = f.Index, findResolvers(f.Type)
			in.schema = schemaOf(schemas, t, f, op.OperationID+"Request")
			describeBody(op, jsonType, in.schema, f.Type.Kind() != reflect.Pointer && f.Type.Kind() != reflect.Interface)
			op.MaxBodyBytes = cmp.Or(op.MaxBodyBytes, 1<<20)
			op.BodyReadTimeout = cmp.Or(op.BodyReadTimeout, 5*time.Second)
		case f.Name == "RawBody":
			in.rawBody = f.Index
			describeBody(op, cmp.Or(f.Tag.Get("contentType"), "application/octet-stream"), &huma.Schema{Type: huma.TypeString, Format: "binary"}, true)
		default:
			refuseResolver(f.Type)
			p := newParam(f, huma.SchemaFromField(schemas, f, ""))
			p.describe(op)
			in.params = append(in.params, p)
		}
	}
	if op.RequestBody != nil && op.MaxBodyBytes <= 0 {
		panic(fmt.Sprintf("operation %s has no limit for its body", op.OperationID))
	}
	return in
}

// describeBody adds a request body to an operation.
func describeBody(op *huma.Operation, kind string, schema *huma.Schema, required bool) {
	if op.RequestBody == nil {
		op.RequestBody = &huma.RequestBody{}
	}
	if op.RequestBody.Content != nil {
		panic(fmt.Sprintf("the request body of operation %s is described twice", op.OperationID))
	}
	op.RequestBody.Content, op.RequestBody.Required = content(kind, schema), required
}

// A param is a field of an input that is read from the path, the query or a header.
type param struct {
	index    []int
	location string // path, query or header
	name     string
	required bool
	fallback string // value if the request has none
	explode  bool   // whether a list is a repeated parameter, instead of one with commas
	schema   *huma.Schema
}

var (
	timeType   = reflect.TypeFor[time.Time]()
	paramTypes = []reflect.Type{reflect.TypeFor[bool](), reflect.TypeFor[int](), reflect.TypeFor[int64](), reflect.TypeFor[[]string](), timeType}
)

func newParam(f reflect.StructField, schema *huma.Schema) param {
	p := param{index: f.Index, fallback: f.Tag.Get("default"), schema: schema}
	for _, location := range []string{"path", "query", "header"} {
		if tag := f.Tag.Get(location); tag != "" && p.location == "" {
			name, option, _ := strings.Cut(tag, ",")
			if option != "" && option != "explode" {
				panic(fmt.Sprintf("field %s has the unsupported option %s", f.Name, option))
			}
			p.location, p.name, p.explode = location, name, option == "explode"
		}
	}
	for _, tag := range []string{"hidden", "nameHint"} {
		if _, ok := f.Tag.Lookup(tag); ok {
			panic(fmt.Sprintf("field %s has the unsupported tag %s", f.Name, tag))
		}
	}
	p.required = p.location == "path" || f.Tag.Get("required") == "true"
	isSupported := f.Type.Kind() == reflect.String || slices.Contains(paramTypes, f.Type)
	if f.Type == timeType && (p.location == "header" || f.Tag.Get("timeFormat") != "") { // another format
		isSupported = false
	}
	if p.location == "" || !isSupported {
		panic(fmt.Sprintf("field %s of type %s cannot be a parameter", f.Name, f.Type))
	}
	return p
}

// describe adds the parameter to the operation, unless it is there already.
func (p *param) describe(op *huma.Operation) {
	if slices.ContainsFunc(op.Parameters, func(other *huma.Param) bool { return other.Name == p.name && other.In == p.location }) {
		return
	}
	d := &huma.Param{Name: p.name, In: p.location, Description: p.schema.Description, Required: p.required, Schema: p.schema}
	if p.location == "query" {
		d.Explode = new(p.explode)
	}
	op.Parameters = append(op.Parameters, d)
}

// text returns the value of the parameter in a request, or "".
func (p *param) text(ctx huma.Context) string {
	switch p.location {
	case "path":
		return cmp.Or(ctx.Param(p.name), p.fallback)
	case "query":
		return cmp.Or(ctx.Query(p.name), p.fallback)
	}
	return cmp.Or(ctx.Header(p.name), p.fallback)
}

// set sets a field to the value of the parameter, and returns the value as it is
// validated.
func (p *param) set(f reflect.Value, text string, ctx huma.Context) (any, error) {
	switch f.Kind() {
	case reflect.String:
		f.SetString(text)
		return text, nil
	case reflect.Bool:
		v, err := strconv.ParseBool(text)
		if err != nil {
			return nil, errors.New("invalid boolean")
		}
		f.SetBool(v)
		return v, nil
	case reflect.Int, reflect.Int64:
		v, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, errors.New("invalid integer")
		}
		f.SetInt(v)
		return v, nil
	case reflect.Struct: // a time
		v, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return nil, errors.New("invalid date/time for format " + time.RFC3339Nano)
		}
		f.Set(reflect.ValueOf(v))
		return text, nil
	}
	list := strings.Split(text, ",")
	if p.explode {
		u := ctx.URL()
		list = u.Query()[p.name]
	}
	var v any = list
	f.Set(reflect.ValueOf(v))
	return v, nil
}

var (
	resolverType    = reflect.TypeFor[huma.ResolverWithPath]()
	oldResolverType = reflect.TypeFor[huma.Resolver]()
)

// refuseResolver panics if values of a type outside of bodies report faults: they would
// not be called.
func refuseResolver(t reflect.Type) {
	if p := reflect.PointerTo(t); p.Implements(resolverType) || p.Implements(oldResolverType) {
		panic(fmt.Sprintf("%s reports faults, which only values in a Body can", t))
	}
}

// findResolvers returns the paths to the values in a body that report their faults. A
// path consists of field indexes; the lists and maps on it are entered.
func findResolvers(body reflect.Type) [][]int {
	var found [][]int
	entered := map[reflect.Type]bool{}
	var find func(t reflect.Type, path []int)
	find = func(t reflect.Type, path []int) {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		isResolver := reflect.PointerTo(t).Implements(resolverType)
		if reflect.PointerTo(t).Implements(oldResolverType) || isResolver && (t.Kind() == reflect.Slice || t.Kind() == reflect.Map) {
			panic(fmt.Sprintf("%s cannot report faults; implement huma.ResolverWithPath, not for a list or a map", t))
		}
		if isResolver {
			found = append(found, path)
		}
		switch {
		case t.Kind() == reflect.Slice || t.Kind() == reflect.Map:
			find(t.Elem(), path)
		case t.Kind() == reflect.Struct && !entered[t]: // a recursive type is entered once
			entered[t] = true
			for i := range t.NumField() {
				f := t.Field(i)
				if f.Tag.Get("default") != "" {
					panic(fmt.Sprintf("field %s of %s has a default, which bodies do not support", f.Name, t))
				}
				if f.IsExported() && !(f.Anonymous && isResolver) { // a struct also checks what it embeds
					find(f.Type, append(path[:len(path):len(path)], i))
				}
			}
			delete(entered, t)
		}
	}
	find(body, nil)
	return found
}
