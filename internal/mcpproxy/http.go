package mcpproxy

import (
	"fmt"
	"net/http"

	"github.com/loadout-dev/loadout/mcpserver"
)

// Handler returns an HTTP handler that serves the MCP endpoint at /mcp, a
// health check at /healthz, and the handlers in o.Mount. It applies the checks
// of [mcpserver.HTTPOptions] to each path. o may be nil.
func (s *Server) Handler(o *mcpserver.HTTPOptions) http.Handler {
	if o == nil {
		o = &mcpserver.HTTPOptions{}
	}
	mux := http.NewServeMux()
	mux.Handle("/mcp", s.Endpoint(o))
	for path, h := range o.Mount {
		mux.Handle(path, h)
	}
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	return o.Protect(mux)
}

// Endpoint returns the HTTP handler of the MCP endpoint. It does not check the
// Host and Origin headers or the token; the caller must add these checks, for
// example with [mcpserver.HTTPOptions.Protect].
func (s *Server) Endpoint(o *mcpserver.HTTPOptions) http.Handler {
	return o.Endpoint(s.sdk, s.opts.Logger)
}
