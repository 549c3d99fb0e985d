// Package upstream connects to MCP servers that others wrote: it reads how they
// are configured ([Parse]), resolves variables ([Config.Resolve]), connects over
// stdio, streamable HTTP, HTTP+SSE or WebSocket ([Dialer]), and keeps connections
// alive, bounded and shared ([Pool], [Server]).
//
// It never starts a process and never stores a token by itself: how a command is
// started and where credentials come from are functions that it is given. It
// knows nothing of skills, policy or people: what may be connected, and for whom,
// is decided above it.
package upstream
