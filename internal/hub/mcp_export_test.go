package hub

import (
	"time"

	"github.com/loadout-dev/loadout/internal/hub/agents"
)

// Registry are the kinds of a hub.
func (h *Hub) Registry() *agents.Registry { return h.kinds }

// LookAtListeners sets how often who listens by MCP has to be let in again.
func (h *Hub) LookAtListeners(every time.Duration) { h.endpoints.listeners.Beat = every }

// MCPEndpoints is how many are kept.
func (h *Hub) MCPEndpoints() int {
	h.endpoints.mu.Lock()
	defer h.endpoints.mu.Unlock()
	return len(h.endpoints.kept)
}

// MaxMCPCalls is how many requests a user makes at once.
const MaxMCPCalls = maxCalls
