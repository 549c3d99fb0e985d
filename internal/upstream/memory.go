package upstream

import (
	"context"
	"fmt"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Types of transports to servers in this program. Grants depend on their values.
const (
	InProcess = "memory"  // the user's servers
	Provider  = "builtin" // providers of tools for skills
)

// MemoryTransport returns a function that connects to servers in this program,
// for [Dialer.Transports]. The keys of servers are the URLs in the servers'
// configurations; the function returns an error for any other URL. It is safe for
// concurrent use if servers is not modified. When the client closes a connection,
// the server side is closed too; the servers themselves need not be closed.
func MemoryTransport(servers map[string]*mcp.Server) func(c *Config, url string) (mcp.Transport, error) {
	return func(_ *Config, url string) (mcp.Transport, error) {
		s := servers[url]
		if s == nil {
			return nil, fmt.Errorf("no in-process server %q", url)
		}
		here, there := mcp.NewInMemoryTransports()
		if _, err := s.Connect(context.Background(), there, nil); err != nil {
			return nil, fmt.Errorf("in-process server %q: %w", url, err)
		}
		return here, nil
	}
}
