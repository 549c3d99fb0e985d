package hub

import (
	"time"

	"github.com/loadout-dev/loadout/internal/hub/agents"
)

// Registry are the kinds of a hub.
func (h *Hub) Registry() *agents.Registry { return h.kinds }

// LookAtListeners sets how often who listens by MCP has to be let in again.
func (h *Hub) LookAtListeners(every time.Duration) { h.mcp.Listeners.Beat = every }

// MCPEndpoints is how many are kept.
func (h *Hub) MCPEndpoints() int { return h.mcp.Count() }

// MaxMCPCalls is how many requests a user makes at once.
func (h *Hub) MaxMCPCalls() int { return h.mcp.Calls.Each }
