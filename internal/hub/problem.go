package hub

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
	"github.com/loadout-dev/loadout/internal/hub/people"
	"github.com/loadout-dev/loadout/internal/hub/signin"
	"github.com/loadout-dev/loadout/internal/store"
	"github.com/loadout-dev/loadout/policy"
)

// Problem is an error as RFC 9457 has it, with a code that a program can act on.
type Problem struct {
	Title   string  `json:"title" doc:"The status in words"`
	Status  int     `json:"status" doc:"The HTTP status"`
	Code    string  `json:"code" doc:"What is wrong, for a program; it never changes"`
	Detail  string  `json:"detail" doc:"What is wrong, for a person"`
	Next    string  `json:"next,omitempty" doc:"What to do"`
	Request string  `json:"request,omitempty" doc:"The id of the request, as the log of the hub has it"`
	Errors  []Fault `json:"errors,omitempty" nullable:"false" doc:"What of the request is wrong"`

	References  *referencesJSON  `json:"references,omitempty" doc:"What keeps a skill from going"`
	Diagnostics []diagnosticJSON `json:"diagnostics,omitempty" nullable:"false" doc:"What is wrong with a SKILL.md"`

	// Changes are what would have come of documents, of which one is refused.
	Changes []changeJSON `json:"changes,omitempty" nullable:"false" doc:"Of documents, with what is wrong with them"`

	header http.Header
}

// Fault is one thing that is wrong with a request. The value is not repeated: it may be
// a password.
type Fault struct {
	Where   string `json:"where" doc:"As body.name or query.limit"`
	Message string `json:"message"`
}

func (p *Problem) Error() string           { return p.Code + ": " + p.Detail }
func (p *Problem) GetStatus() int          { return p.Status }
func (p *Problem) GetHeaders() http.Header { return p.header }
func (p *Problem) ContentType(kind string) string {
	return strings.Replace(kind, "application/json", "application/problem+json", 1)
}

// condition is what one error is over HTTP. A detail that is "" is the error's own.
type condition struct {
	is     error
	status int
	code   string
	detail string
	next   string
}

// conditions are the errors of packages below, for every group of the API. What is hidden
// and what is not there are told in the same words.
var conditions = []condition{
	{store.ErrNotFound, 404, "not_found", notThere, "check the id; what you may see is in the lists"},
	{account.ErrRefused, 401, "bad_token", "the token is not accepted", "make another: POST /api/v1/tokens"},
	{account.ErrPassword, 401, "wrong_password", "the name or the password is wrong", "try again, or ask an administrator for another password"},
	{people.ErrDisabled, 403, "disabled", "the account is disabled", "ask an administrator"},
	{people.ErrNoAccount, 403, "no_account", "you have no account on this hub", "ask an administrator to let your group in"},
	{people.ErrSetup, 403, "bad_link", "", "start the hub again: it prints another link while it has no administrator"},
	{people.ErrHasAdmin, 409, "has_admin", "", "sign in: POST /api/v1/login; a hub that was started without accounts has to be started again"},
	{people.ErrLastAdmin, 409, "last_admin", "", "make somebody else an administrator first"},
	{people.ErrLastOwner, 409, "last_owner", "", "make somebody else an owner first"},
	{account.ErrCrossOrigin, 403, "cross_origin", "the request is from a page of another site", "send it from the hub's own page, or with a token"},
	{account.ErrBusy, 503, "busy", "too many sign in at this moment", "try again in a few seconds"},
	{store.ErrExists, 409, "exists", "there is one of that name already", "take another name"},
	{store.ErrConflict, 409, "changed", "somebody changed it in the meantime", "read it again, and change that"},
	{store.ErrReferenced, 409, "in_use", "", "remove what uses it first"},
	{store.ErrTooMany, 409, "too_many", "", "remove some that are not needed"},
	{store.ErrHeld, 409, "held", "another node is at work on it", "try again in a moment"},
	{store.ErrInvalid, 422, "invalid", "a value cannot be kept: it is too long, or no text, or a page that there is not", "send it shorter and as text; as after send what the page before had as next"},
	{store.ErrUnsupported, 422, "unsupported", "", ""},
	{store.ErrBusy, 503, "busy", "the database is busy", "try again in a few seconds"},
	{store.ErrUnavailable, 503, "unavailable", "the database cannot be reached", "try again in a moment"},
	{store.ErrFull, 507, "disk_full", "the disk of the hub is full", "ask an administrator to make room"},
	{store.ErrCorrupt, 500, "corrupt", "what the hub has kept of it is damaged", "tell the operator: loadout serve --check says what is damaged"},
	{signin.ErrNotNeeded, 409, "signin_unwanted", "", "use the server as it is"},
	{signin.ErrUnset, 409, "not_configured", "", "give it the values that are missing first"},
	{signin.ErrUnknown, 403, "signin_unknown", "", "begin again, in this browser and as who you are"},
	{kinds.ErrNoSealer, 501, "no_key", "", "ask the operator to give the hub a key"},
	{policy.ErrNotGranted, 403, "not_granted", "it was not granted what it asks for", "grant it: POST /api/v1/grants"},
	{context.Canceled, 503, "ended", "the request was ended before it was done", "send it again"},
	{errSlow, 504, "slow", "it took too long", "try again, or ask for less"},
}

const notThere = "there is no such thing, or none that you may see"

// errSlow ends an operation that takes too long.
var errSlow = errors.New("it took too long")

// problem is an error as it is told over HTTP. What is not known is logged, and told as
// no more than that.
func (h *Hub) problem(ctx context.Context, err error) *Problem {
	p := problemOf(err)
	if p == nil && ctx.Err() != nil {
		p = problemOf(context.Cause(ctx))
	}
	v := visitOf(ctx)
	if p == nil {
		p = &Problem{Status: 500, Code: "internal", Detail: "the hub failed", Next: "tell the operator the id of the request"}
	}
	if p.Status == 500 {
		h.log.Error("a request failed", "request", v.id, "route", v.route, "error", err)
	}
	p.Title, p.Request = http.StatusText(p.Status), v.id
	return p
}

// problemOf is a problem that is known, or nil.
func problemOf(err error) *Problem {
	if p, ok := errors.AsType[*Problem](err); ok {
		copied := *p
		return &copied
	}
	if d, ok := errors.AsType[*account.DeniedError](err); ok {
		return denied(d)
	}
	for _, of := range []func(error) *Problem{limited, invalid, fromProvider, signInProblem, ofChat, fromLibrary, fromSource, notKept} {
		if p := of(err); p != nil {
			return p
		}
	}
	for _, c := range conditions {
		if errors.Is(err, c.is) {
			return c.problem(err)
		}
	}
	return fromPlace(err)
}

func (c condition) problem(err error) *Problem {
	p := &Problem{Status: c.status, Code: c.code, Detail: c.detail, Next: c.next}
	if p.Detail == "" {
		p.Detail = err.Error()
	}
	if c.status == 503 {
		p.header = http.Header{"Retry-After": {"5"}}
	}
	if c.status == 401 {
		p.header = challenge()
	}
	return p
}

func denied(d *account.DeniedError) *Problem {
	switch {
	case d.SignIn:
		return &Problem{Status: 401, Code: "sign_in", Detail: "nobody is signed in", header: challenge(),
			Next: "sign in: POST /api/v1/login; or send a token: Authorization: Bearer lo_…"}
	case d.Scopes != 0:
		return &Problem{Status: 403, Code: "scope", Detail: d.Error(), Next: "use a token with the scope " + strings.Join(d.Scopes.Names(), " or ")}
	case d.Unseen:
		return conditions[0].problem(store.ErrNotFound)
	}
	return &Problem{Status: 403, Code: "forbidden", Detail: d.Error(), Next: "ask somebody who manages it"}
}

func challenge() http.Header { return http.Header{"Www-Authenticate": {`Bearer realm="loadout"`}} }

func limited(err error) *Problem {
	l, ok := errors.AsType[*account.LimitedError](err)
	if !ok {
		return nil
	}
	seconds := strconv.Itoa(int(l.After.Seconds()))
	return &Problem{Status: 429, Code: "too_often", Detail: l.Error(), Next: "wait for " + seconds + " s", header: http.Header{"Retry-After": {seconds}}}
}

// invalid is what is wrong with a request, all of it at once.
func invalid(err error) *Problem {
	faults := faultsOf(err)
	if len(faults) == 0 {
		return nil
	}
	return &Problem{Status: 422, Code: "invalid", Detail: "the request cannot be taken as it is", Next: "mend what is in errors", Errors: faults}
}

func faultsOf(err error) []Fault {
	switch e := err.(type) {
	case *people.InvalidError:
		return []Fault{{"body." + e.Field, e.Why}}
	case *account.WeakError:
		return []Fault{{"body.password", e.Error()}}
	case interface{ Unwrap() []error }:
		var all []Fault
		for _, one := range e.Unwrap() {
			all = append(all, faultsOf(one)...)
		}
		return all
	case interface{ Unwrap() error }:
		return faultsOf(e.Unwrap())
	}
	return nil
}

func fromProvider(err error) *Problem {
	e, ok := errors.AsType[*account.ProviderError](err)
	switch {
	case !ok:
		return nil
	case e.Denied:
		return &Problem{Status: 403, Code: "provider_denied", Detail: e.Error(), Next: "begin again: GET /login/oidc"}
	}
	return &Problem{Status: 502, Code: "provider", Detail: e.Error(), Next: "begin again: GET /login/oidc; if it goes on, tell an administrator"}
}

// codes are those of what is found before an operation begins, by status.
var codes = map[int]string{400: "malformed", 404: "not_found", 405: "method", 406: "not_acceptable", 408: "slow", 413: "too_large", 415: "media_type", 422: "invalid"}

// maxFaults bounds what is said to be wrong with one request: of a list, it is the same of
// each item.
const maxFaults = 100

// retell makes of an error of the API library, which repeats values, one of ours.
func retell(ctx huma.Context, _ string, v any) (any, error) {
	e, ok := v.(*huma.ErrorModel)
	if !ok {
		return v, nil
	}
	p := &Problem{Title: http.StatusText(e.Status), Status: e.Status, Code: codes[e.Status], Detail: e.Detail, Request: visitOf(ctx.Context()).id}
	switch e.Status {
	case 415:
		p.Detail, p.Next = "the body is of another kind than is expected", "send it as Content-Type: application/json"
	case 413:
		p.Detail, p.Next = "the request has more bytes than are taken", "send less"
	case 400, 422:
		p.Detail, p.Next = "the request cannot be taken as it is", "see what is expected: GET /openapi.json"
		for _, f := range e.Errors[:min(len(e.Errors), maxFaults)] {
			p.Errors = append(p.Errors, Fault{f.Location, f.Message})
		}
	}
	if visitOf(ctx.Context()).crowded {
		p.Detail, p.Next, p.Errors = "the request has more values than are taken", "send fewer files", nil
	}
	if p.Code == "" {
		p.Code, p.Detail = "internal", "the hub failed"
	}
	return p, nil
}

// refuse answers a request with an error, outside of the API library.
func (h *Hub) refuse(w http.ResponseWriter, r *http.Request, err error) {
	p := h.problem(r.Context(), err)
	for name, values := range p.header {
		w.Header()[name] = values
	}
	if isMCP(r.URL.Path) && (p.Status == http.StatusUnauthorized || p.Code == "scope") {
		w.Header().Set("WWW-Authenticate", h.mcpChallenge(r, p))
	}
	w.Header().Set("Content-Type", "application/problem+json")
	if r.ContentLength != 0 {
		hurry(w)
	}
	w.WriteHeader(p.Status)
	if r.Method != http.MethodHead {
		json.NewEncoder(w).Encode(p) // whom it does not reach has gone
	}
}

// status is a problem that is one of HTTP itself.
func status(code int, detail, next string, args ...any) *Problem {
	return &Problem{Status: code, Code: codes[code], Detail: fmt.Sprintf(detail, args...), Next: next}
}
