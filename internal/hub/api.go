package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/web"
)

const (
	base = "/api/v1"
	// operationTime limits an operation, without reading its body and writing
	// its response.
	operationTime = 30 * time.Second
)

// routes registers all handlers. Each group of the API has a method and a file
// of its own.
func (h *Hub) routes() error {
	h.mux = http.NewServeMux()
	api := humago.New(h.mux, h.apiConfig())
	h.signIn(api)
	h.users(api)
	h.groups(api)
	h.members(api)
	h.tokens(api)
	h.audit(api)
	h.settings(api)
	for _, group := range []func(huma.API){
		h.skillsAPI, h.versionsAPI, h.reviewsAPI, h.searchAPI, // skills.go, versions.go, reviews.go, search.go
		h.draftsAPI, h.importsAPI, h.defaultsAPI, h.ratingsAPI, h.skillUsageAPI, h.totalsAPI, h.notificationsAPI, h.wellKnown,
		h.kindsAPI, h.modelsAPI, h.serversAPI, h.secretsAPI, h.grantsAPI, h.capabilitiesAPI, h.skillSettingsAPI,
		h.sessionsAPI, h.asksAPI, h.aboutAPI,
	} {
		group(api)
	}
	h.mountMCP()
	spec, err := json.MarshalIndent(api.OpenAPI(), "", "  ")
	if err != nil {
		return fmt.Errorf("write OpenAPI document: %w", err)
	}
	h.spec = append(spec, '\n')
	h.mux.HandleFunc("GET /openapi.json", h.serveSpec)
	h.mux.Handle("GET /metrics", h.serveMetrics())
	h.mux.HandleFunc("GET /healthz", h.healthy)
	h.mux.HandleFunc("GET /readyz", h.ready)
	site, err := newSite(web.Files())
	if err != nil {
		return err
	}
	h.mux.HandleFunc("GET /{$}", site.orPage(h.welcome))
	if h.opts.Accounts {
		h.mux.HandleFunc("GET /setup/{link}", site.orPage(h.setupPage))
	}
	if h.gate.oidc != nil {
		h.mux.HandleFunc("GET /login/oidc", h.redirectToProvider)
		h.mux.HandleFunc("GET "+callbackPath, h.finishProviderSignIn)
	}
	h.mux.HandleFunc("GET "+serverCallback, h.finishServerSignIn)
	h.mux.HandleFunc("/", site.orPage(h.notFound))
	return nil
}

func (h *Hub) apiConfig() huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Loadout hub", Version: "1", License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
				Description: "Users, skills, agents and conversations of a hub. Lists are paginated: pass next as after to get the next page. Errors follow RFC 9457, with a stable code."},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":  {Type: "http", Scheme: "bearer", Description: "An API token: POST " + base + "/tokens"},
				"cookie": {Type: "apiKey", In: "cookie", Name: h.gate.logins.CookieName(), Description: "A browser that signed in: POST " + base + "/login"},
			}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format}, // json also matches types that end in +json
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{rewriteErrors},
	}
}

// schemaName returns the name of a type without our suffixes, prefixed with the
// name of its package if that is not this one.
func schemaName(t reflect.Type, hint string) string {
	name := huma.DefaultSchemaNamer(t, hint)
	name = strings.TrimSuffix(strings.TrimSuffix(name, "JSON"), "Struct")
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	if from := t.PkgPath(); from != "" && from != reflect.TypeFor[Hub]().PkgPath() {
		from = path.Base(from)
		return strings.ToUpper(from[:1]) + from[1:] + name
	}
	return name
}

// marshal writes a response at once or not at all. It ignores write errors: the
// client has gone.
func marshal(w io.Writer, v any) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return err
	}
	w.Write(b.Bytes())
	return nil
}

// operation returns an operation for signed-in users. The table of permissions
// in the tests uses its id.
func operation(id, method, path, summary string) huma.Operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return huma.Operation{OperationID: id, Method: method, Path: base + path, Summary: summary, Tags: []string{tag},
		Security: []map[string][]string{{"token": {}}, {"cookie": {}}}}
}

// public returns an operation for everyone.
func public(id, method, path, summary string) huma.Operation {
	op := operation(id, method, path, summary)
	op.Security = []map[string][]string{}
	return op
}

// add adds an operation to the API with a limit of [operationTime].
// [Hub.problem] converts its errors. Unless the operation is public, anonymous
// requests are rejected before f; f itself authorizes all others.
func add[I, O any](h *Hub, api huma.API, op huma.Operation, f func(ctx context.Context, in *I) (*O, error)) {
	addFor(h, api, op, operationTime, f)
}

// addFor is like add with another time limit.
func addFor[I, O any](h *Hub, api huma.API, op huma.Operation, limit time.Duration, f func(ctx context.Context, in *I) (*O, error)) {
	checkEmbedded(reflect.TypeFor[I]())
	checkEmbedded(reflect.TypeFor[O]())
	if len(op.Security) > 0 {
		op.Middlewares = append(op.Middlewares, h.requireSignIn)
	}
	if limit > operationTime {
		op.Middlewares = append(op.Middlewares, withLimit(limit))
	}
	if op.DefaultStatus == 0 && reflect.TypeFor[O]() == reflect.TypeFor[noBody]() {
		op.DefaultStatus = http.StatusNoContent
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, stop := context.WithTimeoutCause(ctx, limit, errTimeout)
		defer stop()
		out, err := f(ctx, in)
		if err != nil {
			return nil, h.problem(ctx, err)
		}
		return out, nil
	})
}

// withLimit extends the write deadline of a response to the limit of its
// operation.
func withLimit(limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(ctx)
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + responseTimeout)) // not supported by every server
		next(ctx)
	}
}

// checkEmbedded panics if a type of this package embeds an unexported struct:
// the API library would silently skip its fields.
func checkEmbedded(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		checkEmbedded(t.Elem())
	case reflect.Struct:
		if t.Name() != "" && t.PkgPath() != reflect.TypeFor[Hub]().PkgPath() {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous && !f.IsExported() {
				panic(fmt.Sprintf("hub: %s embeds unexported %s, whose fields would be missing", t, f.Type))
			}
			checkEmbedded(f.Type)
		}
	}
}

// requireSignIn rejects anonymous requests before their body is read.
func (h *Hub) requireSignIn(ctx huma.Context, next func(huma.Context)) {
	if account.FromContext(ctx.Context()).Anonymous() {
		r, w := humago.Unwrap(ctx)
		h.writeProblem(w, r, &account.DeniedError{SignIn: true})
		return
	}
	next(ctx)
}

// withCreated makes an operation respond with 201.
func withCreated(op huma.Operation) huma.Operation {
	op.DefaultStatus = http.StatusCreated
	return op
}

// noBody is a response without a body, or an empty input.
type noBody struct{}

// body is a response with a body.
type body[T any] struct{ Body T }

func bodyOf[T any](v T, err error) (*body[T], error) {
	if err != nil {
		return nil, err
	}
	return &body[T]{v}, nil
}

// createdBody is the response for a created item, with its location.
type createdBody[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// createdAt returns the response for an item created in a list of the API.
func createdAt[T any](id, list string, v T, err error) (*createdBody[T], error) {
	if err != nil {
		return nil, err
	}
	return &createdBody[T]{base + "/" + list + "/" + id, v}, nil
}

// Paging selects a page of a list.
type Paging struct {
	After string `query:"after" maxLength:"2000" doc:"Value of next on the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of items"`
}

func (p Paging) page() store.Page { return store.Page{After: p.After, Limit: p.Limit} }

// listBody is a page of a list.
type listBody[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last page"`
}

// pageOf returns the response for a page of rows.
func pageOf[R, T any](rows []R, next string, err error, shape func(R) T) (*body[listBody[T]], error) {
	if err != nil {
		return nil, err
	}
	out := listBody[T]{Items: make([]T, len(rows)), Next: next}
	for i, r := range rows {
		out.Items[i] = shape(r)
	}
	return &body[listBody[T]]{out}, nil
}

// optionalTime returns nil for a zero time.
func optionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (h *Hub) serveSpec(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.spec))
}

// notFound responds to requests without a route: with 405 if another method has
// one, else with 404.
func (h *Hub) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		h.writeProblem(w, r, status(404, "no resource at this path", "list the paths: GET /openapi.json"))
		return
	}
	p := status(405, "%s is not allowed at this path", "use "+strings.Join(allowed, " or "), r.Method)
	p.header = http.Header{"Allow": {strings.Join(allowed, ", ")}}
	h.writeProblem(w, r, p)
}
