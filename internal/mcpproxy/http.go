package mcpproxy

import (
	"fmt"
	"net/http"

	"github.com/loadout-dev/loadout/mcpserver"
)

// Handler returns the server as an HTTP handler by itself: the MCP endpoint of
// both eras at /mcp, and /healthz, with the checks of [mcpserver.HTTPOptions] on
// every path. To serve it beside others, put [Server.Endpoint] into the Mount of
// theirs.
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

// Endpoint is the MCP endpoint alone, without checks of Host, Origin and token:
// who mounts it makes them, as [mcpserver.HTTPOptions.Protect] does.
func (s *Server) Endpoint(o *mcpserver.HTTPOptions) http.Handler {
	return o.Endpoint(s.sdk, s.opts.Logger)
}
