// Package upstream connects to MCP servers. [Parse] reads their configuration,
// [Config.Resolve] replaces variables, a [Dialer] connects over stdio,
// streamable HTTP, HTTP+SSE or WebSocket, and a [Pool] shares, limits and
// restores connections. Start reading at [Pool].
//
// The package does not start processes or store tokens: callers supply
// functions for both. It knows nothing about skills, policy or users: callers
// decide which servers may be used.
package upstream
