package upstream

import "github.com/modelcontextprotocol/go-sdk/mcp"

// Allows reports whether Include and Exclude select the tool.
func (c *Config) Allows(t *mcp.Tool) bool { return c.selectsTool(t.Name) }
