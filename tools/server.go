package tools

import "github.com/loadout-dev/loadout/internal/upstream"

// ServerConfig is the normalized configuration of an MCP server. It must not be
// modified while a set uses it.
type ServerConfig = upstream.Config

// Variables holds the values that a server's configuration may refer to. The
// zero value has none.
type Variables = upstream.Variables
