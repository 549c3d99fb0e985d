package upstream

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Allows reports whether a tool of the server is among those that Include and
// Exclude choose.
func (c *Config) Allows(t *mcp.Tool) bool { return c.chooses(t.Name) }
