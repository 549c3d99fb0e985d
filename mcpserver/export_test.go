package mcpserver

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Told is the number of connections that the server remembers.
func (s *Server) Told() int {
	s.texts.mu.Lock()
	defer s.texts.mu.Unlock()
	return len(s.texts.conns)
}

// Connections is the number of connections that there are.
func (s *Server) Connections() int {
	n := 0
	for range s.sdk.Sessions() {
		n++
	}
	return n
}

// SDK is the server of the SDK.
func (s *Server) SDK() *mcp.Server { return s.sdk }
