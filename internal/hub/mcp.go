package hub

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/loadout-dev/loadout/internal/account"
	"github.com/loadout-dev/loadout/internal/hub/kinds"
)

// Paths of the MCP endpoints: of all that somebody reaches, and of a Ghost, by its name
// or by its namespace and its name.
const (
	mcpPath     = "/mcp"
	profilePath = "/mcp/p/"
	// resourcePath is where RFC 9728 wants what is said of an endpoint, before its path.
	resourcePath = "/.well-known/oauth-protected-resource"
)

// mcpScopes are what of a principal's scopes an MCP client has: it finds, loads and
// calls, and runs code of skills where the token has that too.
const mcpScopes = account.ScopeMCP | account.ScopeRun

// mountMCP serves MCP clients. They send a token with each request, a cookie of a browser
// lets none in. Both eras of the protocol are served without sessions, so that any node
// answers any request.
func (h *Hub) mountMCP() {
	h.endpoints = newEndpoints(h)
	for _, path := range []string{mcpPath, profilePath + "{name}", profilePath + "{namespace}/{name}"} {
		h.mux.HandleFunc(path, h.serveMCP)
		h.mux.HandleFunc("GET "+resourcePath+path, h.serveResource)
	}
	h.mux.HandleFunc("GET "+resourcePath, h.serveResource)
}

func (h *Hub) serveMCP(w http.ResponseWriter, r *http.Request) {
	p, err := h.admitMCP(r)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	at := place{name: r.PathValue("name"), namespace: r.PathValue("namespace")}
	if at.name != "" {
		at.kind = kinds.GhostKind
	}
	crowd := h.endpoints.calls
	if listens(r) {
		crowd = h.endpoints.listeners
	}
	leave, err := crowd.enter(p.User)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer leave()
	e, err := h.endpoints.enter(r.Context(), p, at)
	if err != nil {
		h.refuse(w, r, err)
		return
	}
	defer h.endpoints.leave(e)
	slow := &slowAnswer{w}
	slow.within(false)      // a call takes as long as its tool
	defer slow.within(true) // and what is left to be sent then does not
	defer h.keepUses(r.Context(), e.uses)
	if !listens(r) {
		e.handler.ServeHTTP(slow, r)
		return
	}
	ctx, stop := h.whileAdmitted(r, e)
	defer stop()
	e.handler.ServeHTTP(slow, r.WithContext(ctx))
}

// admitMCP returns who makes a request, if he may make one to an MCP endpoint at all.
// Pages of others are turned away whatever they send, as the protocol demands.
func (h *Hub) admitMCP(r *http.Request) (account.Principal, error) {
	v := visitOf(r.Context())
	p := v.by
	if v.login != nil {
		p = account.Principal{}
	}
	if err := h.door.pages.Check(r); err != nil {
		return p, err
	}
	if err := account.Check(p, account.MCPConnect, account.Of(p.User)); err != nil {
		return p, err
	}
	return p.Limited(mcpScopes), nil
}

// listens reports whether a request is for changes that are told as they come, for as
// long as the client listens.
func listens(r *http.Request) bool { return r.Header.Get("Mcp-Method") == "subscriptions/listen" }

// isMCP reports whether a path is that of an MCP endpoint.
func isMCP(path string) bool { return path == mcpPath || strings.HasPrefix(path, profilePath) }

// mcpChallenge tells an MCP client how to be let in: see RFC 6750 and RFC 9728.
func (h *Hub) mcpChallenge(r *http.Request, p *Problem) string {
	says := `Bearer realm="loadout", resource_metadata="` + h.origin(r) + resourcePath + quotable(r.URL.EscapedPath()) + `", scope="mcp"`
	switch p.Code {
	case "bad_token":
		says += `, error="invalid_token"`
	case "scope":
		says += `, error="insufficient_scope"`
	}
	return says
}

// quotable is a path that can stand between quotes.
func quotable(path string) string {
	return strings.NewReplacer(`"`, "%22", `\`, "%5C").Replace(path)
}

// resource is what RFC 9728 has a client know of an endpoint. Tokens are made here, and
// so no server is named that would give others.
type resource struct {
	Resource      string   `json:"resource"`
	Name          string   `json:"resource_name"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"bearer_methods_supported"`
	Documentation string   `json:"resource_documentation"`
}

// serveResource tells what of an endpoint everybody may know, and so the same of one
// that there is not.
func (h *Hub) serveResource(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), resourcePath)
	if path == "" {
		path = mcpPath
	}
	at := h.origin(r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*") // a client in a browser looks here first
	json.NewEncoder(w).Encode(resource{Resource: at + path, Name: "Loadout", Scopes: mcpScopes.Names(),
		Methods: []string{"header"}, Documentation: at + "/openapi.json"}) // whom it does not reach has gone
}
