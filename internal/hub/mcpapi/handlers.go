// Package mcpapi serves the MCP endpoints of a hub: all skills and servers of a
// user, or those of one agent. It also serves what a user permits their tools.
package mcpapi

import (
	"net/http"

	"github.com/loadout-dev/loadout/internal/encryption"
	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/metrics"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/store"
)

// Options are the options of [New]. All but Version are required.
type Options struct {
	*api.Server
	DB         *store.DB
	Cipher     *encryption.Cipher // for questions that another node may get the answer to
	Agents     *agents.Registry
	Library    *library.Library
	Assemblies *assembly.Assembler
	SignIns    *serverauth.Servers // of users to MCP servers
	Gate       *auth.Gate
	TokenWatch *auth.TokenWatch
	Metrics    *metrics.Metrics
	Version    string // reported to clients
}

// Handlers serve the endpoints and the operations.
type Handlers struct {
	Options
	// Calls and Listeners limit running requests. Listeners.Beat is the interval at
	// which subscribers are authenticated again.
	Calls, Listeners *auth.Limiter

	endpoints *endpoints
}

// New returns handlers. The caller closes them.
func New(o Options) *Handlers {
	h := &Handlers{
		Options:   o,
		Calls:     auth.NewLimiter("MCP requests", maxCalls, maxAllCalls, 0, 0),
		Listeners: auth.NewLimiter("MCP streams", maxListeners, maxAllListeners, admittedEvery, 0),
	}
	h.endpoints = newEndpoints(h)
	return h
}

// Close cancels running calls, closes all endpoints and waits for their end.
func (h *Handlers) Close() { h.endpoints.close() }

// Count returns the number of cached endpoints.
func (h *Handlers) Count() int {
	h.endpoints.mu.Lock()
	defer h.endpoints.mu.Unlock()
	return len(h.endpoints.kept)
}

// Register adds the operations, and the endpoints to mux.
func (h *Handlers) Register(mux *http.ServeMux) {
	h.grantsAPI()
	h.capabilitiesAPI()
	h.mountEndpoints(mux)
}
