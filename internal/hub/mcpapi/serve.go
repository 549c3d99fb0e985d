package mcpapi

import (
	"encoding/json"
	"net/http"
	"strings"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
)

// mcpScopes are the principal's scopes that apply to MCP clients. Running code
// requires a token with [account.ScopeRun].
const mcpScopes = account.ScopeMCP | account.ScopeRun

// agentScopes are the scopes with which the API opens an agent, to show or change what
// the user permits to it.
const agentScopes = mcpScopes | account.ScopeChat

// mountEndpoints registers the MCP endpoints. Clients send a token with each
// request; cookies are not accepted. Both protocol versions are served without
// sessions, so that any node can answer any request.
func (h *Handlers) mountEndpoints(mux *http.ServeMux) {
	for _, path := range []string{api.MCPPath, api.MCPAgentPath + "{name}", api.MCPAgentPath + "{namespace}/{name}", api.MCPServerPath + "{label}"} {
		mux.HandleFunc(path, h.serveMCP)
		mux.HandleFunc("GET "+api.MetadataPath+path, h.serveResource)
	}
	mux.HandleFunc("GET "+api.MetadataPath, h.serveResource)
}

func (h *Handlers) serveMCP(w http.ResponseWriter, r *http.Request) {
	p, err := h.authenticateMCP(r)
	if err != nil {
		h.Server.WriteProblem(w, r, err)
		return
	}
	at := agentRef{name: r.PathValue("name"), namespace: r.PathValue("namespace")}
	switch label := r.PathValue("label"); {
	case at.name != "":
		at.kind = agents.GhostKind
	case label != "":
		at = agentRef{kind: agents.ServerKind, name: label}
	}
	crowd := h.Calls
	if isListener(r) {
		crowd = h.Listeners
	}
	leave, err := crowd.Enter(p.User)
	if err != nil {
		h.Server.WriteProblem(w, r, err)
		return
	}
	defer leave()
	e, err := h.endpoints.acquire(r.Context(), p, at)
	if err != nil {
		h.Server.WriteProblem(w, r, err)
		return
	}
	defer h.endpoints.release(e)
	slow := &timeoutWriter{w}
	slow.withTimeout(false)      // a call may take as long as its tool needs
	defer slow.withTimeout(true) // but not the rest of the response
	if !isListener(r) {
		e.handler.ServeHTTP(slow, r)
		return
	}
	ctx, stop := h.withAdmission(r, e)
	defer stop()
	e.handler.ServeHTTP(slow, r.WithContext(ctx))
}

// authenticateMCP returns the principal of a request to an MCP endpoint. It rejects
// requests from pages on other sites regardless of their credentials, as the
// protocol requires.
func (h *Handlers) authenticateMCP(r *http.Request) (account.Principal, error) {
	v := api.RequestFrom(r.Context())
	p := v.Principal
	if v.Login != nil {
		p = account.Principal{}
	}
	if err := h.Gate.Origins.Check(r); err != nil {
		return p, err
	}
	if err := account.Check(p, account.MCPConnect, account.OwnedBy(p.User)); err != nil {
		return p, err
	}
	return p.LimitedTo(mcpScopes), nil
}

// isListener reports whether a request subscribes to notifications.
func isListener(r *http.Request) bool { return r.Header.Get("Mcp-Method") == "subscriptions/listen" }

// resource is the protected resource metadata of an endpoint (RFC 9728). It names
// the identity provider, if there is one, whose access tokens for the endpoint are
// accepted. The hub issues other tokens itself.
type resource struct {
	Resource      string   `json:"resource"`
	Servers       []string `json:"authorization_servers,omitempty"`
	Name          string   `json:"resource_name"`
	Scopes        []string `json:"scopes_supported"`
	Methods       []string `json:"bearer_methods_supported"`
	Documentation string   `json:"resource_documentation"`
}

// serveResource serves the metadata of an endpoint. It does not check whether the
// endpoint exists.
func (h *Handlers) serveResource(w http.ResponseWriter, r *http.Request) {
	path := strings.TrimPrefix(r.URL.EscapedPath(), api.MetadataPath)
	if path == "" {
		path = api.MCPPath
	}
	at := h.Server.Origin(r)
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Access-Control-Allow-Origin", "*") // browser-based clients read the metadata first
	var servers []string
	if h.Gate.OIDC != nil {
		servers = []string{h.Gate.OIDC.Issuer()}
	}
	json.NewEncoder(w).Encode(resource{Resource: at + path, Servers: servers, Name: "Loadout", Scopes: mcpScopes.Names(),
		Methods: []string{"header"}, Documentation: at + "/openapi.json"}) // fails only if the client has disconnected
}
