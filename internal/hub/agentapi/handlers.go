// Package agentapi serves a hub's agents, models, MCP servers and secrets over
// HTTP.
package agentapi

import (
	"net/http"
	"net/netip"

	"github.com/loadout-dev/loadout/internal/hub/agents"
	"github.com/loadout-dev/loadout/internal/hub/api"
	"github.com/loadout-dev/loadout/internal/hub/assembly"
	"github.com/loadout-dev/loadout/internal/hub/auth"
	"github.com/loadout-dev/loadout/internal/hub/library"
	"github.com/loadout-dev/loadout/internal/hub/queue"
	"github.com/loadout-dev/loadout/internal/hub/serverauth"
	"github.com/loadout-dev/loadout/internal/usage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Handlers serves the operations of this package. All fields are required unless
// stated otherwise.
type Handlers struct {
	*api.Server
	Agents     *agents.Registry
	Library    *library.Library
	Assemblies *assembly.Assembler
	SignIns    *serverauth.Servers // users' sign-ins to MCP servers
	Gate       *auth.Gate
	Node       string // ID of this node
	Version    string // reported to MCP servers; may be empty

	Price  func(model string) (price usage.Price, known bool)
	Window func(model string) int // 0 if unknown
	Images func(model string) bool

	// Server trials run commands in Sandbox when Runs has a free slot, and may
	// connect to addresses in Private. Without a sandbox, users' commands never run.
	Sandbox sandbox.Backend
	Runs    *queue.Queue
	Private []netip.Prefix
	Single  bool // whether the hub has no accounts; models may then be on its machine
}

// Register adds the operations to the API, and the browser paths to mux.
func (h *Handlers) Register(mux *http.ServeMux) {
	for _, group := range []func(){h.kindsAPI, h.modelsAPI, h.serversAPI, h.secretsAPI, h.skillSettingsAPI} {
		group()
	}
	mux.HandleFunc("GET "+serverCallback, h.finishServerSignIn)
}
