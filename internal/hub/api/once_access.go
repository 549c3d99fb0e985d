package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/store"
)

// errHidden is the error for a repeated request whose response the user is no
// longer allowed to see.
var errHidden = &Problem{Status: 409, Code: "key_hidden", Detail: "the request with this Idempotency-Key succeeded, but you have lost permissions since, or its result is gone", Next: "check what exists; use another key for a new request"}

// checkRepetition returns [errHidden] unless the user of a repeated request has all
// permissions that the user had when the response was recorded, and can read what
// the request created or changed. If that cannot be determined now, it returns an
// error with status 503.
func (s *Server) checkRepetition(r *http.Request, op *huma.Operation, response *recordedResponse) error {
	p := account.FromContext(r.Context())
	if response.Admin && !p.Admin {
		return errHidden
	}
	for group, role := range response.Groups {
		if p.Groups[group] < role {
			return errHidden
		}
	}
	for _, path := range []string{response.Location, changedPath(r.URL.Path, op.Path)} {
		if !s.isReadable(path) {
			continue
		}
		switch status := s.statusOfRead(r, path); {
		case status >= 500 || status == http.StatusTooManyRequests:
			return store.ErrUnavailable
		case status >= 300:
			return errHidden
		}
	}
	return nil
}

// changedPath returns the path of the innermost item that a request names: for
// /sessions/x/skills, that is /sessions/x. It returns "" if the request names none.
func changedPath(path, template string) string {
	names, params := strings.Split(path, "/"), strings.Split(template, "/")
	for i := len(params) - 1; i > 0; i-- {
		if strings.HasPrefix(params[i], "{") && i < len(names) {
			return strings.Join(names[:i+1], "/")
		}
	}
	return ""
}

// isReadable reports whether the API has an operation that reads the item at
// the given path.
func (s *Server) isReadable(path string) bool {
	names := strings.Split(path, "/")
	for template, item := range s.OpenAPI().Paths {
		if item.Get != nil && matches(strings.Split(template, "/"), names) {
			return true
		}
	}
	return false
}

func matches(template, names []string) bool {
	if len(template) != len(names) {
		return false
	}
	for i, t := range template {
		if t != names[i] && (!strings.HasPrefix(t, "{") || names[i] == "") {
			return false
		}
	}
	return true
}

// statusOfRead sends a GET request for the item at the given path, as the user
// who sent r, and returns its HTTP status. The request has all scopes, so that
// a token with only the write scope also gets the response.
func (s *Server) statusOfRead(r *http.Request, path string) int {
	p := account.FromContext(r.Context())
	p.Scopes = account.AllScopes
	read := r.Clone(account.NewContext(r.Context(), p))
	read.Method, read.Body, read.ContentLength = http.MethodGet, http.NoBody, 0
	read.URL.Path, read.URL.RawPath, read.URL.RawQuery = path, "", ""
	read.Header = http.Header{"Accept": {"application/json"}}
	answer := &statusRecorder{header: http.Header{}, status: http.StatusOK}
	s.Adapter().ServeHTTP(answer, read)
	return answer.status
}

// statusRecorder is a response writer that discards the body and keeps only the
// status.
type statusRecorder struct {
	header http.Header
	status int
}

func (d *statusRecorder) Header() http.Header         { return d.header }
func (d *statusRecorder) Write(b []byte) (int, error) { return len(b), nil }
func (d *statusRecorder) WriteHeader(status int)      { d.status = status }
