package upstream

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Allows reports whether Include and Exclude select a tool.
func (c *Config) Allows(t *mcp.Tool) bool { return c.selectsTool(t.Name) }
