// Package mcpapi serves a hub's MCP endpoints: one for all of a user's skills and
// servers, and one per agent. It also serves the user's tool grants.
package mcpapi

import (
	"context"
	"net/http"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/hub/usage"
	"github.com/loadout-dev/loadout/internal/store"
)

// Options configures [New]. All fields except PriceHint and Version are required.
type Options struct {
	*api.Server
	DB          *store.DB
	Cipher      *encryption.Cipher // encrypts questions that may be answered on another node
	Agents      *agents.Registry
	Library     *library.Library
	Assemblies  *assembly.Assembler
	SignIns     *serverauth.Servers // users' sign-ins to MCP servers
	Gate        *auth.Gate
	Credentials *auth.CredentialWatch
	Metrics     *metrics.Metrics
	// PriceHint returns what tokens of input cost with the hub's own model, or "" if
	// its price is unknown. If it is nil, no prices are shown.
	PriceHint func(ctx context.Context, tokens int) string
	Version   string // reported to clients
}

// Handlers serves the endpoints and operations of this package.
type Handlers struct {
	Options
	// Calls and Listeners limit the number of running requests. Subscribers are
	// authenticated again every Listeners.Beat.
	Calls, Listeners *auth.Limiter

	endpoints *endpoints
	uses      *usage.Buffer[uses]
}

// New returns handlers for the given options. The caller must close them.
func New(o Options) *Handlers {
	h := &Handlers{
		Options:   o,
		Calls:     auth.NewLimiter("MCP requests", maxCalls, maxAllCalls, 0, 0),
		Listeners: auth.NewLimiter("MCP streams", maxListeners, maxAllListeners, admittedEvery, 0),
	}
	h.endpoints, h.uses = newEndpoints(h), usage.NewBuffer(usageTime, h.storeUses)
	return h
}

// Close cancels running calls, closes all endpoints and waits for them to finish. It
// stores the uses of skills that have been counted.
func (h *Handlers) Close() {
	h.endpoints.close()
	h.uses.Close()
}

// Count returns the number of cached endpoints.
func (h *Handlers) Count() int {
	h.endpoints.mu.Lock()
	defer h.endpoints.mu.Unlock()
	return len(h.endpoints.kept)
}

// Register adds the operations to the API, and the endpoints to mux.
func (h *Handlers) Register(mux *http.ServeMux) {
	h.grantsAPI()
	h.capabilitiesAPI()
	h.publishedSkillsAPI()
	h.mountEndpoints(mux)
}
