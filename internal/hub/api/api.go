// Package api contains what all operations of a hub's HTTP API share: how they are
// registered and described, how requests are identified, and how errors become
// responses. One table maps errors to statuses; see [Problem].
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
	"github.com/loadout-dev/loadout/internal/hub/endpoint"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/store"
)

const (
	Prefix = "/api/v1"
	// OperationTimeout is the timeout of an operation, excluding reading the
	// request body and writing the response.
	OperationTimeout = 30 * time.Second
)

// Options configures a [Server].
type Options struct {
	Log      *slog.Logger
	Public   string          // address of the hub; if "", it is taken from each request
	Cookie   string          // name of the sign-in cookie
	Drafts   *queue.Queue    // slots for large drafts
	Draining <-chan struct{} // closed when shutdown starts
	Requests Requests        // records requests with an Idempotency-Key
}

// Server serves API operations and converts their errors to responses.
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
				Description: "Users, skills, agents and conversations of a hub. Lists are paginated: pass next as after to get the next page. Errors follow RFC 9457, with a stable code. A POST with an Idempotency-Key header, your unique ID of the request of at most 200 bytes, can be repeated for 24 hours on any node: it succeeds at most once, and a repetition gets the response of the success. The status is 409 if you have lost permissions since, if the result is gone, or if the response is no longer stored, and 429 with Retry-After after 10,000 keys in 24 hours."},
			Components: &huma.Components{Schemas: schemas, SecuritySchemes: map[string]*huma.SecurityScheme{
				"token":  {Type: "http", Scheme: "bearer", Description: "An API token: POST " + Prefix + "/tokens"},
				"cookie": {Type: "apiKey", In: "cookie", Name: cookie, Description: "A browser that signed in: POST " + Prefix + "/login"},
			}},
		},
		Formats:       map[string]huma.Format{"application/json": format, "json": format}, // json matches types that end in +json
		DefaultFormat: "application/json",
		Transformers:  []huma.Transformer{rewriteErrors},
	}
}

// schemaNames maps types of lower-level packages to schema names. The schema
// names of other types from such packages are prefixed with the package name.
var schemaNames = map[string]string{
	"account.GroupRule":          "Rule",
	"agents.FieldChange":         "Field",
	"agents.NewerChange":         "Stale",
	"agents.Secret":              "Secret",
	"agents.SecretGrant":         "SecretGrant",
	"agents.SkillChoice":         "ProfileSkill",
	"agents.TeamMember":          "ProfileMember",
	"chat.Conversation":          "Session",
	"chat.ExcerptPart":           "SessionExcerpt",
	"chat.Found":                 "SessionFound",
	"chat.Response":              "Response",
	"chat.Redacted":              "Redacted",
	"chat.Share":                 "Share",
	"chat.Shared":                "Shared",
	"chat.SharedCall":            "SharedCall",
	"chat.SharedContent":         "SharedContent",
	"chat.SharedImage":           "SharedImage",
	"chat.SharedMessage":         "SharedMessage",
	"chat.SharePreview":          "SharePreview",
	"library.Candidate":          "Candidate",
	"library.CategoryCount":      "CategoryCount",
	"library.Deletion":           "Deletion",
	"library.Exception":          "DefaultException",
	"library.Facets":             "SkillFacets",
	"library.TagCount":           "TagCount",
	"library.Hit":                "SkillHit",
	"library.BrokenSkill":        "BrokenSkill",
	"library.Progress":           "Progress",
	"library.ImportChange":       "ImportedSkill",
	"library.ImportResult":       "Imported",
	"library.Reference":          "Reference",
	"library.References":         "References",
	"library.Score":              "SkillScore",
	"library.Skill":              "Skill",
	"library.Overview":           "SkillOverview",
	"library.Publisher":          "SkillPublisher",
	"library.Section":            "SkillSection",
	"library.Source":             "SkillSource",
	"library.SourceStatus":       "SkillSourceStatus",
	"library.SourceListing":      "Offer",
	"library.SourceSkill":        "Offered",
	"llm.Call":                   "SessionCall",
	"llm.Image":                  "SessionImage",
	"llm.Thinking":               "SessionThinking",
	"llm.Usage":                  "SessionUsage",
	"quota.Amounts":              "Amounts",
	"quota.Override":             "QuotaOverride",
	"scan.Finding":               "Finding",
	"skilldiff.FieldChange":      "DiffField",
	"skilldiff.File":             "DiffFile",
	"skilldiff.PermissionChange": "DiffAsk",
	"skilldiff.Version":          "DiffSide",
	"store.AuditRecord":          "Record",
	"store.Rating":               "Rating",
	"library.ChangeRequest":      "ChangeRequest",
	"library.MissingApproval":    "MissingApproval",
	"library.ReviewEvent":        "ReviewEvent",
	"library.ReviewStatus":       "ReviewStatus",
	"library.CommentThread":      "CommentThread",
	"library.Comment":            "Comment",
	"upstream.VariableUse":       "ServerUse",
	"users.Group":                "Group",
	"users.Invitation":           "Invitation",
	"users.InvitedTo":            "InvitedTo",
	"users.InvitedUser":          "InvitedUser",
	"users.OpenedInvitation":     "OpenedInvitation",
	"users.Rules":                "Rules",
}

// schemaName returns the name of a type's schema. If the type is not in
// [schemaNames], this is the name of the type without the suffixes JSON and
// Struct, prefixed with the package name unless isOwnType reports true.
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

// isOwnType reports whether a type belongs to the API: to this package, to a
// resource package such as skillapi, or to package hub.
func isOwnType(t reflect.Type) bool {
	return strings.HasSuffix(t.PkgPath(), "api") || strings.HasSuffix(t.PkgPath(), "/hub")
}

// marshal encodes v completely before writing. It ignores write errors, which mean
// that the client has disconnected.
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

// Operation returns an operation for signed-in users. The permission table in the
// tests refers to the operation by its id.
func Operation(id, method, path, summary string) huma.Operation {
	tag, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	return huma.Operation{OperationID: id, Method: method, Path: Prefix + path, Summary: summary, Tags: []string{tag},
		Security: []map[string][]string{{"token": {}}, {"cookie": {}}}}
}

// PublicOperation returns an operation that needs no sign-in.
func PublicOperation(id, method, path, summary string) huma.Operation {
	op := Operation(id, method, path, summary)
	op.Security = []map[string][]string{}
	return op
}

// Add adds an operation with a timeout of [OperationTimeout]. [Server.Problem]
// converts its errors. Unless the operation is public, anonymous requests are
// rejected before f is called. f must authorize all other requests.
func Add[I, O any](s *Server, op huma.Operation, f func(ctx context.Context, in *I) (*O, error)) {
	AddFor(s, op, OperationTimeout, f)
}

// AddFor is like [Add], but with a different timeout.
func AddFor[I, O any](s *Server, op huma.Operation, timeout time.Duration, f func(ctx context.Context, in *I) (*O, error)) {
	s.register(op, timeout, reflect.TypeFor[I](), reflect.TypeFor[O](), func(ctx context.Context, in any) (any, error) {
		out, err := f(ctx, in.(*I))
		if out == nil {
			return nil, err // not a nil pointer in an interface
		}
		return out, err
	})
}

// register adds an operation with the types in and out. Add and AddFor are generic, so
// the program contains their code once for each operation; register keeps it small.
func (s *Server) register(op huma.Operation, timeout time.Duration, in, out reflect.Type, call endpoint.Call) {
	s.prepare(&op, timeout, in, out)
	endpoint.Register(s, op, in, out, func(ctx context.Context, in any) (out any, err error) {
		err = s.limit(ctx, op.OperationID, timeout, func(ctx context.Context) error {
			out, err = call(ctx, in)
			return err
		})
		return out, err
	})
}

// prepare completes an operation with the types in and out before it is registered.
func (s *Server) prepare(op *huma.Operation, timeout time.Duration, in, out reflect.Type) {
	checkEmbedded(in)
	checkEmbedded(out)
	if len(op.Security) > 0 {
		op.Middlewares = append(op.Middlewares, s.requireSignIn, s.limitMCP)
		if op.Method == http.MethodPost && !withoutKeys[op.OperationID] {
			op.Middlewares = append(op.Middlewares, s.once(op, timeout))
			op.Parameters = append(op.Parameters, keyParameter)
		}
	}
	if timeout > OperationTimeout {
		op.Middlewares = append(op.Middlewares, extendDeadline(timeout))
	}
	if op.DefaultStatus == 0 && out == reflect.TypeFor[NoBody]() {
		op.DefaultStatus = http.StatusNoContent
	}
}

// limit calls f with a timeout and converts its error.
func (s *Server) limit(ctx context.Context, operation string, timeout time.Duration, f func(context.Context) error) error {
	ctx, stop := context.WithTimeoutCause(ctx, timeout, ErrTimeout)
	defer stop()
	if err := f(ctx); err != nil {
		return s.Problem(ctx, withoutMCP(operation, err))
	}
	return nil
}

// extendDeadline returns middleware that extends the write deadline to match the
// operation's timeout.
func extendDeadline(timeout time.Duration) func(huma.Context, func(huma.Context)) {
	return func(ctx huma.Context, next func(huma.Context)) {
		_, w := humago.Unwrap(ctx)
		http.NewResponseController(w).SetWriteDeadline(time.Now().Add(timeout + ResponseTimeout)) // not supported by every server
		next(ctx)
	}
}

// checkEmbedded panics if a type of this package embeds an unexported struct,
// because the API library would silently skip its fields.
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

// WithCreated returns op with the response status 201.
func WithCreated(op huma.Operation) huma.Operation {
	op.DefaultStatus = http.StatusCreated
	return op
}

// NoBody is an empty request or response.
type NoBody struct{}

// Body is a response whose body is encoded as JSON.
type Body[T any] struct{ Body T }

func BodyOf[T any](v T, err error) (*Body[T], error) {
	if err != nil {
		return nil, err
	}
	return &Body[T]{v}, nil
}

// CreatedBody is a response with the created item and its location.
type CreatedBody[T any] struct {
	Location string `header:"Location"`
	Body     T
}

// CreatedAt returns the response for a new item in the list at the given path.
func CreatedAt[T any](id, list string, v T, err error) (*CreatedBody[T], error) {
	if err != nil {
		return nil, err
	}
	return &CreatedBody[T]{Prefix + "/" + list + "/" + id, v}, nil
}

// Paging holds the query parameters that select a page of a list.
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

// PageOf returns the response for a page of rows, each converted by shape.
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

// ListOf is like [PageOf], but does not convert the rows.
func ListOf[T any](rows []T, next string, err error) (*Body[ListBody[T]], error) {
	return PageOf(rows, next, err, func(r T) T { return r })
}

// ValuesOf is like [ListOf], but for pointers to rows.
func ValuesOf[T any](rows []*T, next string, err error) (*Body[ListBody[T]], error) {
	return PageOf(rows, next, err, func(r *T) T { return *r })
}

// OptionalTime returns a pointer to t, or nil if t is zero.
func OptionalTime(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// Origin returns the hub's base URL as seen by the client.
func (s *Server) Origin(r *http.Request) string {
	if s.Public != "" {
		return s.Public
	}
	return "http://" + r.Host
}

// UserQuery is the query parameter that selects a user.
type UserQuery struct {
	User string `query:"user" maxLength:"64" default:"me" doc:"ID of a user, or me"`
}

// UserID returns the user ID in a request, resolving "me" to the principal.
func UserID(p account.Principal, id string) account.UserID {
	if id == "me" {
		return p.User
	}
	return account.UserID(id)
}

// NonNil returns list, or an empty list if it is nil. JSON encodes nil as null.
func NonNil[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

// OwnNamespace stands for the user's own namespace in URL paths, which cannot
// contain an empty segment.
const OwnNamespace = "default"

// UsageDays is the query parameter for a period that ends today.
type UsageDays struct {
	Days int `query:"days" minimum:"1" maximum:"3650" default:"30" doc:"Number of days up to today"`
}

// Since returns the start of the period, at midnight UTC.
func (d UsageDays) Since() time.Time {
	return time.Now().UTC().Truncate(24*time.Hour).AddDate(0, 0, 1-d.Days)
}

// SkillPath is the path parameter for a skill.
type SkillPath struct {
	Skill string `path:"skill" maxLength:"64" doc:"ID of a skill"`
}
