package mcpproxy

import (
	"fmt"
	"net/http"

	"github.com/loadout-dev/loadout/mcpserver"
)

// Handler returns an HTTP handler with the MCP endpoint at /mcp and with
// /healthz, and the checks of [mcpserver.HTTPOptions] on each path. To serve it
// beside other handlers, add [Server.Endpoint] to their Mount.
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

// Endpoint returns the MCP endpoint without checks of Host, Origin and token.
// The caller adds them, for example with [mcpserver.HTTPOptions.Protect].
func (s *Server) Endpoint(o *mcpserver.HTTPOptions) http.Handler {
	return o.Endpoint(s.sdk, s.opts.Logger)
}
