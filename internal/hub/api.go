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

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/web"
)

const (
	base = "/api/v1"
	// operationTime is how long an operation may take, but for its body and its answer.
	operationTime = 30 * time.Second
)

// routes puts all that is served where it is. Each group of the API is a method and a
// file of its own.
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
		h.draftsAPI, h.importsAPI, h.defaultsAPI, h.ratingsAPI, h.skillUsageAPI, h.totalsAPI, h.noticesAPI, h.wellKnown,
		h.kindsAPI, h.modelsAPI, h.serversAPI, h.secretsAPI, h.grantsAPI, h.capabilitiesAPI, h.skillSettingsAPI,
		h.sessionsAPI, h.asksAPI, h.aboutAPI,
	} {
		group(api)
	}
	h.mountMCP()
	spec, err := json.MarshalIndent(api.OpenAPI(), "", "  ")
	if err != nil {
		return fmt.Errorf("write the OpenAPI document: %w", err)
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
	h.mux.HandleFunc("GET /{$}", site.open(h.welcome))
	if h.opts.Accounts {
		h.mux.HandleFunc("GET /setup/{link}", site.open(h.setupPage))
	}
	if h.door.oidc != nil {
		h.mux.HandleFunc("GET /login/oidc", h.toProvider)
		h.mux.HandleFunc("GET "+callbackPath, h.fromProvider)
	}
	h.mux.HandleFunc("GET "+serverCallback, h.fromServer)
	h.mux.HandleFunc("/", site.open(h.nowhere))
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
				Description: "People, skills, agents and conversations of a hub. Lists come in pages: pass what is in next as after. Errors are as in RFC 9457, with a code that never changes."},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":  {Type: "http", Scheme: "bearer", Description: "An API token: POST " + base + "/tokens"},
				"cookie": {Type: "apiKey", In: "cookie", Name: h.door.logins.CookieName(), Description: "A browser that signed in: POST " + base + "/login"},
			}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format}, // the latter is whatever ends in +json
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{retell},
	}
}

// schemaName is the name of a type without the words that ours end with, and with that
// of its package where it is not ours: two packages may have types of one name.
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

// marshal writes an answer at once, or none of it. Whom it does not reach has gone.
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

// operation is an operation for who signed in. Its id is what the table of authority
// calls it.
func operation(id, method, path, summary string) huma.Operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return huma.Operation{OperationID: id, Method: method, Path: base + path, Summary: summary, Tags: []string{tag},
		Security: []map[string][]string{{"token": {}}, {"cookie": {}}}}
}

// public is an operation for anybody.
func public(id, method, path, summary string) huma.Operation {
	op := operation(id, method, path, summary)
	op.Security = []map[string][]string{}
	return op
}

// add adds an operation to the API. It has [operationTime], and its errors are told as
// [Hub.problem] says. Unless it is public, who has not signed in does not get as far
// as f, which decides by itself what others may.
func add[I, O any](h *Hub, api huma.API, op huma.Operation, f func(ctx context.Context, in *I) (*O, error)) {
	addFor(h, api, op, operationTime, f)
}

// addFor is add for an operation that may take as long as limit.
func addFor[I, O any](h *Hub, api huma.API, op huma.Operation, limit time.Duration, f func(ctx context.Context, in *I) (*O, error)) {
	mustShow(reflect.TypeFor[I]())
	mustShow(reflect.TypeFor[O]())
	if len(op.Security) > 0 {
		op.Middlewares = append(op.Middlewares, h.signedIn)
	}
	if limit > operationTime {
		op.Middlewares = append(op.Middlewares, unhurried(limit))
	}
	if op.DefaultStatus == 0 && reflect.TypeFor[O]() == reflect.TypeFor[nothing]() {
		op.DefaultStatus = http.StatusNoContent
	}
	huma.Register(api, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, stop := context.WithTimeoutCause(ctx, limit, errSlow)
		defer stop()
		out, err := f(ctx, in)
		if err != nil {
			return nil, h.problem(ctx, err)
		}
		return out, nil
	})
}

// unhurried lets an answer be written as long after an operation has ended as others are.
func unhurried(limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(ctx)
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + answerTime)) // not with every server
		next(ctx)
	}
}

// mustShow panics for a type of this package, or without a name, that embeds one which is
// not exported: the API library would pass over its fields without a word.
func mustShow(t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice:
		mustShow(t.Elem())
	case reflect.Struct:
		if t.Name() != "" && t.PkgPath() != reflect.TypeFor[Hub]().PkgPath() {
			return
		}
		for i := range t.NumField() {
			f := t.Field(i)
			if f.Anonymous && !f.IsExported() {
				panic(fmt.Sprintf("hub: %s embeds %s, which has to be exported to be seen", t, f.Type))
			}
			mustShow(f.Type)
		}
	}
}

// signedIn stops who has not signed in before a body is read.
func (h *Hub) signedIn(ctx huma.Context, next func(huma.Context)) {
	if account.FromContext(ctx.Context()).Anonymous() {
		r, w := humago.Unwrap(ctx)
		h.refuse(w, r, &account.DeniedError{SignIn: true})
		return
	}
	next(ctx)
}

// created makes an operation one that answers with 201.
func created(op huma.Operation) huma.Operation {
	op.DefaultStatus = http.StatusCreated
	return op
}

// nothing is an answer without a body, and the input of an operation that needs none.
type nothing struct{}

// body is an answer with one.
type body[T any] struct{ Body T }

func answered[T any](v T, err error) (*body[T], error) {
	if err != nil {
		return nil, err
	}
	return &body[T]{v}, nil
}

// made is an answer with what was made, and where it is.
type made[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// madeAt is the answer with what was made, in a list of the API.
func madeAt[T any](id, list string, v T, err error) (*made[T], error) {
	if err != nil {
		return nil, err
	}
	return &made[T]{base + "/" + list + "/" + id, v}, nil
}

// Paging asks for a page of a list.
type Paging struct {
	After string `query:"after" maxLength:"2000" doc:"What the page before had as next"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"How many at most"`
}

func (p Paging) page() store.Page { return store.Page{After: p.After, Limit: p.Limit} }

// listed is a page of a list.
type listed[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Where the next page begins; not there on the last"`
}

// page makes an answer of a page of rows.
func page[R, T any](rows []R, next string, err error, shape func(R) T) (*body[listed[T]], error) {
	if err != nil {
		return nil, err
	}
	out := listed[T]{Items: make([]T, len(rows)), Next: next}
	for i, r := range rows {
		out.Items[i] = shape(r)
	}
	return &body[listed[T]]{out}, nil
}

// when is a time that is left out where it is zero.
func when(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func (h *Hub) serveSpec(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/openapi+json")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(h.spec))
}

// nowhere answers what no route is for: with 405 where another method is served there.
func (h *Hub) nowhere(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		h.refuse(w, r, status(404, "nothing is served at this path", "see what there is: GET /openapi.json"))
		return
	}
	p := status(405, "%s is not served at this path", "use "+strings.Join(allowed, " or "), r.Method)
	p.header = http.Header{"Allow": {strings.Join(allowed, ", ")}}
	h.refuse(w, r, p)
}
