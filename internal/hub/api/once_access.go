package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"github.com/loadout-dev/loadout/internal/hub/account"
)

// maySee reports whether the user of a repeated request has all permissions that
// the user had when the response was recorded, and can read what the request
// created or changed.
func (s *Server) maySee(r *http.Request, op *huma.Operation, response *recordedResponse) bool {
	p := account.FromContext(r.Context())
	if response.Admin && !p.Admin {
		return false
	}
	for group, role := range response.Groups {
		if p.Groups[group] < role {
			return false
		}
	}
	for _, path := range []string{response.Location, changedPath(r.URL.Path, op.Path)} {
		if s.isReadable(path) && !s.canRead(r, path) {
			return false
		}
	}
	return true
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

// canRead reports whether the user of r may read the item at the given path now.
func (s *Server) canRead(r *http.Request, path string) bool {
	read := r.Clone(r.Context())
	read.Method, read.Body, read.ContentLength = http.MethodGet, http.NoBody, 0
	read.URL.Path, read.URL.RawPath, read.URL.RawQuery = path, "", ""
	read.Header = http.Header{"Accept": {"application/json"}}
	answer := &discarded{header: http.Header{}, status: http.StatusOK}
	s.Adapter().ServeHTTP(answer, read)
	return answer.status < 300
}

// discarded is a response writer that discards the body and keeps only the
// status.
type discarded struct {
	header http.Header
	status int
}

func (d *discarded) Header() http.Header         { return d.header }
func (d *discarded) Write(b []byte) (int, error) { return len(b), nil }
func (d *discarded) WriteHeader(status int)      { d.status = status }
