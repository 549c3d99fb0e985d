package hub_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/jsonschema-go/jsonschema"

	"github.com/loadout-dev/loadout/internal/hub"
)

var update = flag.Bool("update", false, "write the OpenAPI document into testdata")

// document is as much of an OpenAPI document as tests look at.
type document struct {
	OpenAPI    string
	Paths      map[string]map[string]operation
	Components struct {
		Schemas         map[string]json.RawMessage
		SecuritySchemes map[string]json.RawMessage
	}

	resolved map[string]*jsonschema.Resolved // by the text of a schema
}

type operation struct {
	OperationID string
	Summary     string
	Tags        []string
	Security    []map[string][]string
	Parameters  []struct {
		Name, In string
		Required bool
		Schema   json.RawMessage
	}
	RequestBody struct{ Content map[string]media }
	Responses   map[string]struct {
		Description string
		Content     map[string]media
	}
}

type media struct{ Schema json.RawMessage }

func readDocument(t testing.TB, n *node) *document {
	t.Helper()
	r := n.anybody().send(t, "GET", "/openapi.json", nil).want(t, 200)
	if kind := r.header.Get("Content-Type"); kind != "application/openapi+json" {
		t.Errorf("the document is %s", kind)
	}
	d := &document{resolved: map[string]*jsonschema.Resolved{}}
	r.into(t, d)
	return d
}

// componentRef is a reference to a schema of the document.
var componentRef = regexp.MustCompile(`"#/components/schemas/([^"]+)"`)

// addSchemas adds to defs the schemas that a schema refers to, directly or not.
func (d *document) addSchemas(defs map[string]json.RawMessage, schema json.RawMessage) {
	for _, ref := range componentRef.FindAllSubmatch(schema, -1) {
		name := string(ref[1])
		if s, ok := d.Components.Schemas[name]; ok && defs[name] == nil {
			defs[name] = localRefs(s)
			d.addSchemas(defs, s)
		}
	}
}

// localRefs returns a schema whose references are to $defs.
func localRefs(schema json.RawMessage) json.RawMessage {
	return json.RawMessage(strings.ReplaceAll(string(schema), "#/components/schemas/", "#/$defs/"))
}

// resolve returns a schema of the document together with the schemas that it refers to.
func (d *document) resolve(raw json.RawMessage) (*jsonschema.Resolved, error) {
	if s, ok := d.resolved[string(raw)]; ok {
		return s, nil
	}
	defs := map[string]json.RawMessage{}
	d.addSchemas(defs, raw)
	data, err := json.Marshal(map[string]any{"$defs": defs, "allOf": []json.RawMessage{localRefs(raw)}})
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal(data, &s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err == nil {
		d.resolved[string(raw)] = resolved
	}
	return resolved, err
}

func TestOpenAPIDocumentIsInStep(t *testing.T) {
	n := start(t, hub.Options{Accounts: true})
	got := n.anybody().send(t, "GET", "/openapi.json", nil).want(t, 200).body
	file := filepath.Join("testdata", "openapi.json")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("the document changed; run: go test ./internal/hub -run InStep -update\n%s", diff)
	}
}

func TestOpenAPIDocumentIsValid(t *testing.T) {
	n := start(t, hub.Options{Accounts: true})
	d := readDocument(t, n)
	if d.OpenAPI != "3.1.0" {
		t.Errorf("version %q", d.OpenAPI)
	}
	ids := map[string]bool{}
	for path, item := range d.Paths {
		for method, op := range item {
			where := method + " " + path
			if op.OperationID == "" || ids[op.OperationID] || op.Summary == "" || len(op.Tags) != 1 || op.Security == nil {
				t.Errorf("%s: id %q, summary %q, tags %v, security %v", where, op.OperationID, op.Summary, op.Tags, op.Security)
			}
			ids[op.OperationID] = true
			checkOperation(t, d, where, path, op)
		}
	}
}

func checkOperation(t *testing.T, d *document, where, path string, op operation) {
	t.Helper()
	check := func(what string, raw json.RawMessage) {
		if _, err := d.resolve(raw); err != nil || len(raw) == 0 {
			t.Errorf("%s: the schema of %s: %v", where, what, err)
		}
	}
	for _, need := range op.Security {
		for scheme := range need {
			if d.Components.SecuritySchemes[scheme] == nil {
				t.Errorf("%s: no security scheme %s", where, scheme)
			}
		}
	}
	var inPath []string
	for _, p := range op.Parameters {
		if p.In == "path" {
			inPath = append(inPath, "{"+p.Name+"}")
			if !p.Required {
				t.Errorf("%s: %s is not required", where, p.Name)
			}
		}
		check(p.Name, p.Schema)
	}
	for part := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(part, "{") && !slices.Contains(inPath, part) {
			t.Errorf("%s: %s is not a parameter", where, part)
		}
	}
	for kind, m := range op.RequestBody.Content {
		check("the body as "+kind, m.Schema)
	}
	if op.Responses["default"].Content["application/problem+json"].Schema == nil {
		t.Errorf("%s: errors are missing", where)
	}
	for status, r := range op.Responses {
		if r.Description == "" {
			t.Errorf("%s: %s has no description", where, status)
		}
		for kind, m := range r.Content {
			check(status+" as "+kind, m.Schema)
		}
	}
}

// conforms checks a response against the OpenAPI document of an operation.
func (d *document) conforms(t *testing.T, id string, r reply) {
	t.Helper()
	for _, item := range d.Paths {
		for _, op := range item {
			if op.OperationID == id {
				d.checkAnswer(t, op, r)
			}
		}
	}
}

func (d *document) checkAnswer(t *testing.T, op operation, r reply) {
	t.Helper()
	said, ok := op.Responses[itoa(r.status)]
	if !ok {
		said = op.Responses["default"]
		if r.status < 400 {
			t.Errorf("%s: the status %d is missing", op.OperationID, r.status)
			return
		}
	}
	if r.body == "" {
		if len(said.Content) > 0 {
			t.Errorf("%s: %d has no body", op.OperationID, r.status)
		}
		return
	}
	kind, _, _ := strings.Cut(r.header.Get("Content-Type"), ";")
	m, ok := said.Content[kind]
	if !ok {
		t.Errorf("%s: %d as %s is missing", op.OperationID, r.status, r.header.Get("Content-Type"))
		return
	}
	if !strings.HasSuffix(kind, "json") {
		return
	}
	schema := must(d.resolve(m.Schema))(t)
	var v any
	r.into(t, &v)
	if err := schema.Validate(v); err != nil {
		t.Errorf("%s: %s: %v", op.OperationID, r.body, err)
	}
}
