package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/quota"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/hub/users"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/internal/untrusted"
	"github.com/loadout-dev/loadout/policy"
)

// Problem is an error response as defined by RFC 9457, with a stable code for
// programs.
type Problem struct {
	Title   string  `json:"title" doc:"Text of the status"`
	Status  int     `json:"status" doc:"The HTTP status"`
	Code    string  `json:"code" doc:"Stable code for programs"`
	Detail  string  `json:"detail" doc:"Explanation for users"`
	Next    string  `json:"next,omitempty" doc:"What to do"`
	Request string  `json:"request,omitempty" doc:"ID of the request, as in the log"`
	Errors  []Fault `json:"errors,omitempty" nullable:"false" doc:"Invalid fields of the request"`

	Taken       *Taken              `json:"taken,omitempty" doc:"The skill that has the name already"`
	Digest      string              `json:"digest,omitempty" doc:"Digest of the Model that exists already"`
	References  *library.References `json:"references,omitempty" doc:"What still refers to the item"`
	Diagnostics []Diagnostic        `json:"diagnostics,omitempty" nullable:"false" doc:"Problems of a SKILL.md"`

	// Quota describes the limit that a request would exceed.
	Quota *Quota `json:"quota,omitempty" doc:"The limit that the request would exceed"`

	// Changes describes the documents of a refused request.
	Changes []Change `json:"changes,omitempty" nullable:"false" doc:"The documents with their findings"`

	Header http.Header `json:"-"` // response headers
}

// Fault describes an invalid field of a request, or a reason why a package was
// rejected. For a field it does not repeat the value, which might be a password.
type Fault struct {
	Where   string `json:"where" doc:"For example body.name, query.limit, or a file in a package"`
	Message string `json:"message"`
	Code    string `json:"code,omitempty" doc:"Kind of a reason to reject a package, for example folder-name"`
}

func (p *Problem) Error() string           { return p.Code + ": " + p.Detail }
func (p *Problem) GetStatus() int          { return p.Status }
func (p *Problem) GetHeaders() http.Header { return p.Header }
func (p *Problem) ContentType(kind string) string {
	return strings.Replace(kind, "application/json", "application/problem+json", 1)
}

// condition maps an error to a response. If detail is empty, the response contains
// the error text.
type condition struct {
	matches error
	status  int
	code    string
	detail  string
	next    string
}

// conditions maps errors from lower-level packages to responses. Hidden and
// missing items get the same response.
var conditions = []condition{
	{store.ErrNotFound, 404, "not_found", notFoundProblem, "check the ID; the lists show what you can access"},
	{account.ErrInvalidCredentials, 401, "bad_token", "invalid token", "create a new one: POST /api/v1/tokens"},
	{account.ErrWrongPassword, 401, "wrong_password", "wrong name or password", "try again, or ask an administrator for a new password"},
	{users.ErrDisabled, 403, "disabled", "the account is disabled", "ask an administrator"},
	{users.ErrNoAccount, 403, "no_account", "you have no account on this hub", "ask an administrator to add your group to the sign-in rules"},
	{users.ErrSetup, 403, "bad_link", "", "restart the hub: it prints a new link as long as it has no administrator"},
	{users.ErrInvitation, 404, "bad_invitation", "", "ask whoever sent it for a new link"},
	{users.ErrInvitationsOff, 403, "invitations_disabled", "", "ask an administrator to invite the user"},
	{users.ErrHasAdmin, 409, "has_admin", "", "sign in: POST /api/v1/login; restart a hub that was started without accounts"},
	{users.ErrLastAdmin, 409, "last_admin", "", "make another user an administrator first"},
	{users.ErrLastOwner, 409, "last_owner", "", "make another member an owner first"},
	{account.ErrCrossOrigin, 403, "cross_origin", "request comes from a page on another site", "send it from the hub's own page, or with a token"},
	{account.ErrBusy, 503, "busy", "too many sign-ins in progress", "try again in a few seconds"},
	{store.ErrExists, 409, "exists", "an item with this name already exists", "choose another name"},
	{store.ErrConflict, 409, "changed", "another user changed it in the meantime", "read it again and repeat the change"},
	{store.ErrReferenced, 409, "in_use", "", "remove the references to it first"},
	{library.ErrTooManyComments, 409, "too_many_comments", "", "delete comments that are no longer needed, or ask a reviewer to"},
	{store.ErrTooMany, 409, "too_many", "", "remove items that you no longer need"},
	{policy.ErrTooManyGrants, 409, "too_many", "", "remove items that you no longer need"},
	{store.ErrLeaseHeld, 409, "held", "another node is working on it", "try again in a moment"},
	{store.ErrInvalid, 422, "invalid", "a value cannot be stored: it is too long, not text, or not a valid page position", "send a shorter text; as after, send the value of next from the previous page"},
	{store.ErrUnsupported, 422, "unsupported", "", ""},
	{store.ErrBusy, 503, "busy", "the database is busy", "try again in a few seconds"},
	{store.ErrUnavailable, 503, "unavailable", "the database cannot be reached", "try again in a moment"},
	{store.ErrFull, 507, "disk_full", "the disk of the hub is full", "ask an administrator to free disk space"},
	{store.ErrCorrupt, 500, "corrupt", "the stored data is damaged", "tell the operator to run: loadout serve --check"},
	{serverauth.ErrNotNeeded, 409, "signin_unwanted", "", "use the server without signing in"},
	{serverauth.ErrNotConfigured, 409, "not_configured", "", "set the missing values first"},
	{serverauth.ErrNoAttempt, 403, "signin_unknown", "", "start again, in this browser and with your account"},
	{agents.ErrNoKey, 501, "no_key", "", "ask the operator to give the hub a key"},
	{policy.ErrNotGranted, 403, "not_granted", "permission not granted", "grant it: POST /api/v1/grants"},
	{context.Canceled, 503, "ended", "the request was canceled", "send it again"},
	{ErrTimeout, 504, "slow", "timeout", "try again, or request less data"},
}

const notFoundProblem = "not found, or you may not see it"

// ErrTimeout is the cancellation cause of an operation that takes too long.
var ErrTimeout = errors.New("operation timed out")

// Problem converts an error to a response. It logs unknown errors and hides
// their details.
func (s *Server) Problem(ctx context.Context, err error) *Problem {
	p := newProblem(err)
	if p == nil && ctx.Err() != nil {
		p = newProblem(context.Cause(ctx))
	}
	v := RequestFrom(ctx)
	if p == nil {
		p = &Problem{Status: 500, Code: "internal", Detail: "the hub failed", Next: "tell the operator the ID of the request"}
	}
	if p.Status == 500 {
		s.Log.Error("a request failed", "request", v.ID, "route", v.Route, "error", err)
	}
	p.Title, p.Request = http.StatusText(p.Status), v.ID
	return p.clean()
}

// clean removes disallowed characters from the strings in p, which may repeat
// an argument or text of a skill or server, and returns p.
func (p *Problem) clean() *Problem {
	p.Detail, p.Next = untrusted.New(p.Detail).ForPage(), untrusted.New(p.Next).ForPage()
	p.Errors = slices.Clone(p.Errors)
	for i, f := range p.Errors {
		p.Errors[i] = Fault{untrusted.New(f.Where).ForPage(), untrusted.New(f.Message).ForPage(), f.Code}
	}
	return p
}

// newProblem converts a known error to a problem. It returns nil if the error
// is unknown.
func newProblem(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		copied := *p
		return &copied
	}
	if d, ok := errors.AsType[*account.DeniedError](err); ok {
		return deniedProblem(d)
	}
	for _, of := range []func(error) *Problem{rateLimitProblem, quotaProblem, invalidFieldsProblem, providerProblem, signInProblem, chatProblem, libraryProblem, sourceProblem, libraryInputProblem} {
		if p := of(err); p != nil {
			return p
		}
	}
	for _, c := range conditions {
		if errors.Is(err, c.matches) {
			return c.problem(err)
		}
	}
	return remoteProblem(err)
}

func (c condition) problem(err error) *Problem {
	p := &Problem{Status: c.status, Code: c.code, Detail: c.detail, Next: c.next}
	if p.Detail == "" {
		p.Detail = err.Error()
	}
	if c.status == 503 {
		p.Header = http.Header{"Retry-After": {"5"}}
	}
	if c.status == 401 {
		p.Header = authHeader()
	}
	return p
}

func deniedProblem(d *account.DeniedError) *Problem {
	switch {
	case d.SignIn:
		return &Problem{Status: 401, Code: "sign_in", Detail: "not signed in", Header: authHeader(),
			Next: "sign in: POST /api/v1/login; or send a token: Authorization: Bearer lo_…"}
	case d.Scopes != 0:
		return &Problem{Status: 403, Code: "scope", Detail: d.Error(), Next: "use a token with the scope " + strings.Join(d.Scopes.Names(), " or ")}
	case d.Hidden:
		return conditions[0].problem(store.ErrNotFound)
	}
	return &Problem{Status: 403, Code: "forbidden", Detail: d.Error(), Next: "ask an owner or maintainer"}
}

func authHeader() http.Header { return http.Header{"Www-Authenticate": {`Bearer realm="loadout"`}} }

func rateLimitProblem(err error) *Problem {
	l, ok := errors.AsType[*account.RateLimitError](err)
	if !ok {
		return nil
	}
	seconds := strconv.Itoa(int(l.RetryAfter.Seconds()))
	return &Problem{Status: 429, Code: "too_often", Detail: l.Error(), Next: "wait for " + seconds + " s", Header: http.Header{"Retry-After": {seconds}}}
}

// Quota describes a limit on how much a user or group may store.
type Quota struct {
	Namespace store.Namespace `json:"namespace" doc:"user:ID, group:ID or public"`
	Measure   quota.Measure   `json:"measure" enum:"bytes,skills,sessions"`
	Limit     int64           `json:"limit"`
	Used      int64           `json:"used" doc:"Before the request"`
	Added     int64           `json:"added" doc:"By the request"`
}

// quotaProblem reports an exceeded limit as a client error, so that it does not
// trigger alerts for server errors.
func quotaProblem(err error) *Problem {
	e, ok := errors.AsType[*quota.ExceededError](err)
	if !ok {
		return nil
	}
	next := map[quota.Measure]string{
		quota.Bytes:    "delete old versions of skills, or conversations",
		quota.Skills:   "delete skills that are not needed",
		quota.Sessions: "delete conversations that are not needed",
	}[e.Measure]
	return &Problem{Status: 403, Code: "quota", Detail: e.Error(), Next: next + "; or ask an administrator for a higher limit",
		Quota: &Quota{Namespace: e.Namespace, Measure: e.Measure, Limit: e.Limit, Used: e.Used, Added: e.Added}}
}

// invalidFieldsProblem reports all invalid fields of a request at once.
func invalidFieldsProblem(err error) *Problem {
	faults := findFaults(err)
	if len(faults) == 0 {
		return nil
	}
	return InvalidFields(faults...)
}

func findFaults(err error) []Fault {
	switch e := err.(type) {
	case *users.InvalidError:
		return []Fault{{Where: "body." + e.Field, Message: e.Reason}}
	case *account.WeakPasswordError:
		return []Fault{{Where: "body.password", Message: e.Error()}}
	case interface{ Unwrap() []error }:
		var all []Fault
		for _, one := range e.Unwrap() {
			all = append(all, findFaults(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return findFaults(e.Unwrap())
	}
	return nil
}

func providerProblem(err error) *Problem {
	e, ok := errors.AsType[*account.ProviderError](err)
	switch {
	case !ok:
		return nil
	case e.Denied:
		return &Problem{Status: 403, Code: "provider_denied", Detail: e.Error(), Next: "start again: GET /login/oidc"}
	}
	return &Problem{Status: 502, Code: "provider", Detail: e.Error(), Next: "start again: GET /login/oidc; if it keeps failing, tell an administrator"}
}

// codes maps HTTP statuses to problem codes, for errors that occur before an
// operation starts.
var codes = map[int]string{400: "malformed", 404: "not_found", 405: "method", 406: "not_acceptable", 408: "slow", 413: "too_large", 415: "media_type", 422: "invalid"}

// maxFaults is the maximum number of faults in a response. Without a limit, a
// long list could have a fault for each item.
const maxFaults = 100

// rewriteErrors converts errors from the API library, so that they do not
// repeat request values.
func rewriteErrors(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{Title: http.StatusText(e.Status), Status: e.Status, Code: codes[e.Status], Detail: e.Detail, Request: RequestFrom(ctx.Context()).ID}
	switch e.Status {
	case 415:
		p.Detail, p.Next = "unsupported content type", "send it as Content-Type: application/json"
	case 413:
		p.Detail, p.Next = "the request is too large", "send less"
	case 400, 422:
		p.Detail, p.Next = "the request is invalid", "see the expected format: GET /openapi.json"
		for _, f := range e.Errors[:min(len(e.Errors), maxFaults)] {
			p.Errors = append(p.Errors, Fault{Where: f.Location, Message: f.Message})
		}
	}
	if RequestFrom(ctx.Context()).tooManyValues {
		p.Detail, p.Next, p.Errors = "the request has too many values", "send fewer files", nil
	}
	if p.Code == "" {
		p.Code, p.Detail = "internal", "the hub failed"
	}
	return p.clean(), nil
}

// WriteProblem writes an error response for a handler that does not use the API
// library.
func (s *Server) WriteProblem(w http.ResponseWriter, r *http.Request, err error) {
	p := s.Problem(r.Context(), err)
	for name, values := range p.Header {
		w.Header()[name] = values
	}
	if IsMCP(r.URL.Path) && (p.Status == http.StatusUnauthorized || p.Code == "scope") {
		w.Header().Set("WWW-Authenticate", s.mcpChallenge(r, p))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	LimitBodyRest(w)
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		json.NewEncoder(w).Encode(p) // fails only if the client has disconnected
	}
}

// InvalidFields returns a 422 problem that lists the invalid fields of a request.
func InvalidFields(faults ...Fault) *Problem {
	return &Problem{Status: 422, Code: "invalid", Detail: "the request is invalid", Next: "fix the fields in errors", Errors: faults}
}

// IsHidden reports whether an error means that an item does not exist or that the
// principal is not allowed to see it.
func IsHidden(err error) bool {
	_, denied := errors.AsType[*account.DeniedError](err)
	return denied || errors.Is(err, store.ErrNotFound)
}

// NewProblem returns a problem for an HTTP status. detail is formatted with args.
func NewProblem(code int, detail, next string, args ...any) *Problem {
	return &Problem{Status: code, Code: codes[code], Detail: fmt.Sprintf(detail, args...), Next: next}
}

// IsMCP reports whether a path belongs to an MCP endpoint.
func IsMCP(path string) bool {
	return path == MCPPath || strings.HasPrefix(path, MCPAgentPath) || strings.HasPrefix(path, MCPServerPath)
}

// mcpChallenge returns the WWW-Authenticate header that tells an MCP client how to
// authenticate. See RFC 6750 and RFC 9728.
func (s *Server) mcpChallenge(r *http.Request, p *Problem) string {
	says := `Bearer realm="loadout", resource_metadata="` + s.Origin(r) + MetadataPath + escapeQuoted(r.URL.EscapedPath()) + `", scope="mcp"`
	switch p.Code {
	case "bad_token":
		says += `, error="invalid_token"`
	case "scope":
		says += `, error="insufficient_scope"`
	}
	return says
}

// escapeQuoted escapes a path for use in a quoted string.
func escapeQuoted(path string) string {
	return strings.NewReplacer(`"`, "%22", `\`, "%5C").Replace(path)
}

// Paths of the MCP endpoints: one for everything that a user can access, one per
// Ghost, by name or by namespace and name, and one for the skills of each MCP server,
// by its label.
const (
	MCPPath       = "/mcp"
	MCPAgentPath  = "/mcp/p/"
	MCPServerPath = "/mcp/s/"
	// MetadataPath is the prefix for protected resource metadata (RFC 9728).
	MetadataPath = "/.well-known/oauth-protected-resource"
)
