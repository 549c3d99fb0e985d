package hub

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/loadout-dev/loadout/internal/hub/account"
	"github.com/loadout-dev/loadout/internal/hub/accountapi"
	"github.com/loadout-dev/loadout/internal/hub/agentapi"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/mcpapi"
	"github.com/loadout-dev/loadout/internal/hub/migrateapi"
	"github.com/loadout-dev/loadout/internal/hub/page"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/sessionapi"
	"github.com/loadout-dev/loadout/internal/hub/skillapi"
	"github.com/loadout-dev/loadout/internal/hub/users"
)

// routes registers all handlers.
func (h *Hub) routes() error {
	h.mux = http.NewServeMux()
	h.server = api.New(h.mux, api.Options{Log: h.log, Public: h.opts.Public, Cookie: h.gate.Logins.CookieName(), Drafts: queue.New(api.MaxLargeDrafts, maxWaiting), Draining: h.draining, Requests: api.Requests{DB: h.db, Cipher: h.cipher}})
	h.registerOperations()
	h.spec = sync.OnceValues(func() ([]byte, error) {
		spec, err := json.MarshalIndent(h.server.OpenAPI(), "", "  ")
		return append(spec, '\n'), err
	})
	h.mux.HandleFunc("GET /openapi.json", h.serveSpec)
	h.mux.Handle("GET /metrics", h.metricsHandler())
	h.mux.HandleFunc("GET /healthz", h.healthy)
	h.mux.HandleFunc("GET /readyz", h.ready)
	site, err := page.New(page.Files())
	if err != nil {
		return err
	}
	h.mux.HandleFunc("GET /{$}", site.OrElse(h.welcome))
	if h.opts.Accounts {
		h.mux.HandleFunc("GET /setup/{link}", site.OrElse(h.setupPage))
	}
	h.mux.HandleFunc("GET /shared/{link}", withoutReferrer(site.OrElse(h.sharedPage)))
	h.mux.HandleFunc("GET "+users.InvitationPath+"{link}", withoutReferrer(site.OrElse(h.invitationPage)))
	h.mux.HandleFunc("/", site.OrElse(h.notFound))
	return nil
}

// sharedPage responds to programs that request the page of a shared conversation. The
// page has its own route, because the log and the metrics contain routes instead of
// paths, and its address is secret.
func (h *Hub) sharedPage(w http.ResponseWriter, r *http.Request) {
	h.server.WriteProblem(w, r, api.NewProblem(404, "this page is for browsers", "read the conversation: GET "+api.Prefix+"/shared/LINK"))
}

// invitationPage responds to programs that request the page of an invitation. Like a
// share, it has its own route.
func (h *Hub) invitationPage(w http.ResponseWriter, r *http.Request) {
	h.server.WriteProblem(w, r, api.NewProblem(404, "this page is for browsers", "read the invitation: GET "+api.Prefix+"/invite/LINK"))
}

// withoutReferrer sets headers for a page whose address is secret: search engines do
// not list it, and other sites do not learn it.
func withoutReferrer(page http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Robots-Tag", "noindex, nofollow")
		w.Header().Set("Referrer-Policy", "no-referrer")
		page(w, r)
	}
}

// registerOperations adds the API operations.
func (h *Hub) registerOperations() {
	accounts := &accountapi.Handlers{Server: h.server, Directory: h.directory, Gate: h.gate, Metrics: h.metrics, Single: h.Single(), Sharing: !h.Single() && h.opts.Sharing != SharingOff}
	accounts.Everyone = h.opts.Provider != nil && h.opts.Provider.Everyone
	accounts.Register(h.mux)
	skills := &skillapi.Handlers{Server: h.server, Library: h.library, Agents: h.kinds}
	skills.Register()
	kinds := &agentapi.Handlers{Server: h.server, Agents: h.kinds, Library: h.library, Assemblies: h.assemblies, SignIns: h.signIns, Gate: h.gate,
		Node: h.node, Version: h.opts.Version, Price: h.opts.Price, Window: h.opts.Window, Images: h.opts.Images,
		Sandbox: h.opts.Sandbox, Runs: h.runs, Private: h.opts.Private, Single: h.Single()}
	kinds.Register(h.mux)
	h.sessions = sessionapi.New(sessionapi.Options{Server: h.server, Chat: h.chat, Agents: h.kinds, Library: h.library, Users: h.db.Users, Gate: h.gate,
		Credentials: h.credentialWatch, Price: h.opts.Price, Window: h.opts.Window})
	h.sessions.Register()
	migrations := &migrateapi.Handlers{Server: h.server, Library: h.library, Agents: h.kinds, Chat: h.chat}
	migrations.Register()
	h.mcp = mcpapi.New(mcpapi.Options{Server: h.server, DB: h.db, Cipher: h.cipher, Agents: h.kinds, Library: h.library, Assemblies: h.assemblies,
		SignIns: h.signIns, Gate: h.gate, Credentials: h.credentialWatch, Metrics: h.metrics, PriceHint: h.priceHint, Version: h.opts.Version})
	h.mcp.Register(h.mux)
	h.aboutAPI()
}

// priceHint describes the price of the given number of input tokens for the
// hub's own model. It returns "" if the price is unknown.
func (h *Hub) priceHint(ctx context.Context, tokens int) string {
	own, err := h.OwnModel(ctx)
	if err != nil {
		return ""
	}
	price, known := h.opts.Price(own)
	if !known {
		return ""
	}
	return price.InputHint(tokens, own)
}

// OwnModel returns the name of the model of agents without a Model, as the model
// reports it. The name of the demo starts with "demo:".
func (h *Hub) OwnModel(ctx context.Context) (string, error) {
	own, connected, err := h.assemblies.OwnModel(ctx, account.SinglePrincipal())
	if err != nil {
		return "", err
	}
	if connected != nil {
		return connected.ReportedName(), nil
	}
	return own.Name(), nil
}

func (h *Hub) serveSpec(w http.ResponseWriter, r *http.Request) {
	spec, err := h.spec()
	if err != nil {
		h.server.WriteProblem(w, r, fmt.Errorf("write OpenAPI document: %w", err))
		return
	}
	w.Header().Set("Content-Type", "application/openapi+json")
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(spec))
}

// notFound responds to requests without a matching route: with 405 if the path
// supports another method, otherwise with 404.
func (h *Hub) notFound(w http.ResponseWriter, r *http.Request) {
	var allowed []string
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"} {
		other := r.Clone(r.Context())
		other.Method = method
		if _, pattern := h.mux.Handler(other); pattern != "/" {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) == 0 {
		h.server.WriteProblem(w, r, api.NewProblem(404, "no resource at this path", "list the paths: GET /openapi.json"))
		return
	}
	p := api.NewProblem(405, "%s is not allowed at this path", "use "+strings.Join(allowed, " or "), r.Method)
	p.Header = http.Header{"Allow": {strings.Join(allowed, ", ")}}
	h.server.WriteProblem(w, r, p)
}
