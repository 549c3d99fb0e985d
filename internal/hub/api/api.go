// Package api holds what the HTTP API of a hub has in common: how operations are
// added and described, how requests are known, and how errors become responses.
// One table maps errors to statuses; see [Problem].
package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path"
	"reflect"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	Prefix = "/api/v1"
	// OperationTimeout limits an operation, without reading its body and writing
	// its response.
	OperationTimeout = 30 * time.Second
)

// Options are the options of a server.
type Options struct {
	Log      *slog.Logger
	Public   string          // address of the hub; "" for the one in each request
	Cookie   string          // name of the cookie of browsers
	Drafts   *queue.Queue    // slots for large drafts
	Draining <-chan struct{} // closed when shutdown starts
}

// Server serves operations. It writes responses and errors in one form.
type Server struct {
	huma.API
	Options
}

func New(mux *http.ServeMux, o Options) *Server {
	return &Server{humago.New(mux, apiConfig(o.Cookie)), o}
}

func apiConfig(cookie string) huma.Config {
	schemas := huma.NewMapRegistry("#/components/schemas/", schemaName)
	schemas.RegisterTypeAlias(reflect.TypeFor[huma.ErrorModel](), reflect.TypeFor[Problem]())
	format := huma.Format{Marshal: marshal, Unmarshal: json.Unmarshal}
	return huma.Config{
		OpenAPI: &huma.OpenAPI{
			OpenAPI: "3.1.0",
			Info: &huma.Info{Title: "Loadout hub", Version: "1", License: &huma.License{Name: "Apache-2.0", Identifier: "Apache-2.0"},
				Description: "Users, skills, agents and conversations of a hub. Lists are paginated: pass next as after to get the next page. Errors follow RFC 9457, with a stable code."},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":  {Type: "http", Scheme: "bearer", Description: "An API token: POST " + Prefix + "/tokens"},
				"cookie": {Type: "apiKey", In: "cookie", Name: cookie, Description: "A browser that signed in: POST " + Prefix + "/login"},
			}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format}, // json also matches types that end in +json
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{rewriteErrors},
	}
}

// schemaNames are the names of schemas for types of packages below the API. Other
// types of such packages have the name of the package before their own.
var schemaNames = map[string]string{
	"account.GroupRule":          "Rule",
	"agents.FieldChange":         "Field",
	"agents.NewerChange":         "Stale",
	"agents.Secret":              "Secret",
	"agents.SecretGrant":         "SecretGrant",
	"agents.SkillChoice":         "ProfileSkill",
	"agents.TeamMember":          "ProfileMember",
	"chat.Conversation":          "Session",
	"chat.Response":              "Response",
	"library.Candidate":          "Candidate",
	"library.Deletion":           "Deletion",
	"library.Exception":          "DefaultException",
	"library.Hit":                "SkillHit",
	"library.ImportChange":       "ImportedSkill",
	"library.ImportResult":       "Imported",
	"library.Reference":          "Reference",
	"library.References":         "References",
	"library.Score":              "SkillScore",
	"library.Skill":              "Skill",
	"library.Source":             "SkillSource",
	"library.SourceListing":      "Offer",
	"library.SourceSkill":        "Offered",
	"scan.Finding":               "Finding",
	"skilldiff.FieldChange":      "DiffField",
	"skilldiff.File":             "DiffFile",
	"skilldiff.PermissionChange": "DiffAsk",
	"skilldiff.Version":          "DiffSide",
	"store.AuditRecord":          "Record",
	"store.Rating":               "Rating",
	"upstream.VariableUse":       "ServerUse",
	"users.Group":                "Group",
	"users.Rules":                "Rules",
}

// schemaName returns the name in [schemaNames], or the name of a type without our
// suffixes, prefixed with the name of its package if that is not one of the API.
func schemaName(t reflect.Type, hint string) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice {
		t = t.Elem()
	}
	from := path.Base(t.PkgPath())
	if name, ok := schemaNames[from+"."+t.Name()]; ok {
		return name
	}
	if strings.HasPrefix(t.Name(), "ListBody[") {
		item := t.Field(0).Type.Elem()
		if name, ok := schemaNames[path.Base(item.PkgPath())+"."+item.Name()]; ok {
			return "ListBody" + name
		}
	}
	name := huma.DefaultSchemaNamer(t, hint)
	name = strings.TrimSuffix(strings.TrimSuffix(name, "JSON"), "Struct")
	if t.PkgPath() != "" && !isOwnType(t) {
		return strings.ToUpper(from[:1]) + from[1:] + name
	}
	return name
}

// isOwnType reports whether a type belongs to a package of the API: this one, one of
// resources such as skillapi, or the hub.
func isOwnType(t reflect.Type) bool {
	return strings.HasSuffix(t.PkgPath(), "api") || strings.HasSuffix(t.PkgPath(), "/hub")
}

// marshal writes a response at once or not at all. It ignores write errors: the
// Client has gone.
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

// Operation returns an operation for signed-in users. The table of permissions
// in the tests uses its id.
func Operation(id, method, path, summary string) huma.Operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return huma.Operation{OperationID: id, Method: method, Path: Prefix + path, Summary: summary, Tags: []string{tag},
		Security: []map[string][]string{{"token": {}}, {"cookie": {}}}}
}

// PublicOperation returns an operation for everyone.
func PublicOperation(id, method, path, summary string) huma.Operation {
	op := Operation(id, method, path, summary)
	op.Security = []map[string][]string{}
	return op
}

// Add adds an operation to the API with a limit of [OperationTimeout].
// [Server.Problem] converts its errors. Unless the operation is public, anonymous
// requests are rejected before f; f itself authorizes all others.
func Add[I, O any](s *Server, op huma.Operation, f func(ctx context.Context, in *I) (*O, error)) {
	AddFor(s, op, OperationTimeout, f)
}

// AddFor is like add with another time limit.
func AddFor[I, O any](s *Server, op huma.Operation, limit time.Duration, f func(ctx context.Context, in *I) (*O, error)) {
	checkEmbedded(reflect.TypeFor[I]())
	checkEmbedded(reflect.TypeFor[O]())
	if len(op.Security) > 0 {
		op.Middlewares = append(op.Middlewares, s.requireSignIn)
	}
	if limit > OperationTimeout {
		op.Middlewares = append(op.Middlewares, withLimit(limit))
	}
	if op.DefaultStatus == 0 && reflect.TypeFor[O]() == reflect.TypeFor[NoBody]() {
		op.DefaultStatus = http.StatusNoContent
	}
	huma.Register(s, op, func(ctx context.Context, in *I) (*O, error) {
		ctx, stop := context.WithTimeoutCause(ctx, limit, ErrTimeout)
		defer stop()
		out, err := f(ctx, in)
		if err != nil {
			return nil, s.Problem(ctx, err)
		}
		return out, nil
	})
}

// withLimit extends the write deadline of a response to the limit of its
// operation.
func withLimit(limit time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(ctx)
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(limit + ResponseTimeout)) // not supported by every server
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
		if t.Name() != "" && !isOwnType(t) {
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
func (s *Server) requireSignIn(ctx huma.Context, next func(huma.Context)) {
	if account.FromContext(ctx.Context()).Anonymous() {
		r, w := humago.Unwrap(ctx)
		s.WriteProblem(w, r, &account.DeniedError{SignIn: true})
		return
	}
	next(ctx)
}

// WithCreated makes an operation respond with 201.
func WithCreated(op huma.Operation) huma.Operation {
	op.DefaultStatus = http.StatusCreated
	return op
}

// NoBody is a response without a body, or an empty input.
type NoBody struct{}

// Body is a response with a body.
type Body[T any] struct{ Body T }

func BodyOf[T any](v T, err error) (*Body[T], error) {
	if err != nil {
		return nil, err
	}
	return &Body[T]{v}, nil
}

// CreatedBody is the response for a created item, with its location.
type CreatedBody[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// CreatedAt returns the response for an item created in a list of the API.
func CreatedAt[T any](id, list string, v T, err error) (*CreatedBody[T], error) {
	if err != nil {
		return nil, err
	}
	return &CreatedBody[T]{Prefix + "/" + list + "/" + id, v}, nil
}

// Paging selects a page of a list.
type Paging struct {
	After string `query:"after" maxLength:"2000" doc:"Value of next on the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"500" default:"50" doc:"Maximum number of items"`
}

func (p Paging) Page() store.Page { return store.Page{After: p.After, Limit: p.Limit} }

// ListBody is a page of a list.
type ListBody[T any] struct {
	Items []T    `json:"items" nullable:"false"`
	Next  string `json:"next,omitempty" doc:"Pass as after to get the next page; absent on the last page"`
}

// PageOf returns the response for a page of rows.
func PageOf[R, T any](rows []R, next string, err error, shape func(R) T) (*Body[ListBody[T]], error) {
	if err != nil {
		return nil, err
	}
	out := ListBody[T]{Items: make([]T, len(rows)), Next: next}
	for i, r := range rows {
		out.Items[i] = shape(r)
	}
	return &Body[ListBody[T]]{out}, nil
}

// ListOf returns a page of rows that are served as they are.
func ListOf[T any](rows []T, next string, err error) (*Body[ListBody[T]], error) {
	return PageOf(rows, next, err, func(r T) T { return r })
}

// ValuesOf is like [ListOf] for pointers to rows.
func ValuesOf[T any](rows []*T, next string, err error) (*Body[ListBody[T]], error) {
	return PageOf(rows, next, err, func(r *T) T { return *r })
}

// OptionalTime returns nil for a zero time.
func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Origin returns the address of the hub from the client's point of view.
func (s *Server) Origin(r *http.Request) string {
	if s.Public != "" {
		return s.Public
	}
	return "http://" + r.Host
}

// UserQuery selects a user in a query.
type UserQuery struct {
	User string `query:"user" maxLength:"64" default:"me" doc:"ID of a user, or me"`
}

// UserID resolves me to the ID of the principal.
func UserID(p account.Principal, written string) account.UserID {
	if written == "me" {
		return p.User
	}
	return account.UserID(written)
}

// NonNil returns an empty list instead of nil, for JSON.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OwnNamespace stands for the user's own namespace in paths, where "" is
// impossible.
const OwnNamespace = "default"

// UsageDays selects a period.
type UsageDays struct {
	Days int `query:"days" minimum:"1" maximum:"3650" default:"30" doc:"Number of days up to today"`
}

// Since returns the start in UTC of the period, whose last day is today.
func (d UsageDays) Since() time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-d.Days)
}

// SkillPath holds the ID of a skill in a path.
type SkillPath struct {
	Skill string `path:"skill" maxLength:"64" doc:"ID of a skill"`
}
