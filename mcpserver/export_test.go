package mcpserver

import (
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout"
	"github.com/loadout-dev/loadout/internal/clientprofile"
)

// CancelUndecided and DecisionSchema are for tests of answers that the client of
// the SDK does not send.
var CancelUndecided, DecisionSchema = cancelUndecided, decisionSchema

// Told is the number of connections that the server remembers.
func (s *Server) Told() int {
	s.texts.mu.Lock()
	defer s.texts.mu.Unlock()
	return len(s.texts.conns)
}

// Grown is the number of connections whose list of tools has grown.
func (s *Server) Grown() int {
	s.growth.mu.Lock()
	defer s.growth.mu.Unlock()
	return len(s.growth.conns)
}

// Connections returns the number of connections of clients.
func (s *Server) Connections() int {
	n := 0
	for ss := range s.sessions() {
		if !isStatelessSession(ss) {
			n++
		}
	}
	return n
}

// RanText is the text of the result of a run.
func (s *Server) RanText(r *loadout.RunResult) string { return s.scriptResultText(r) }

// SDK is the server of the SDK.
func (s *Server) SDK() *mcp.Server { return s.connectable() }

// Shared returns what identifies the definitions for stateless calls.
func (s *Server) Shared() any { return s.definitions() }

// HasSDK reports whether the server has a server of the SDK for connections.
func (s *Server) HasSDK() bool { return s.lasting.Load() != nil }

// CatalogText returns the instructions for clients with a profile.
func (s *Server) CatalogText(p *clientprofile.Profile) string {
	return s.catalogTextOf(s.view(), p).instructions
}
