package tools

import (
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Types that a program needs for its own MCP servers. A [Pool] connects to
// servers as described by their [ServerConfig]. A [Set] finds and calls their
// tools.
type (
	// ServerConfig is the normalized configuration of an MCP server.
	ServerConfig = upstream.Config
	// Dialer connects to servers. Its zero value supports only HTTP.
	Dialer = upstream.Dialer
	// Spawner starts the command of a stdio server.
	Spawner = upstream.Spawner
	// Process is a running stdio server.
	Process = upstream.Process
	// Pool shares connections to servers. Closing it closes all of them.
	Pool = upstream.Pool
	// PoolOptions configures a [Pool].
	PoolOptions = upstream.PoolOptions
	// Variables holds the values that a server's configuration may refer to.
	Variables = upstream.Variables
)

// NewPool returns a pool without connections. The caller must close it.
func NewPool(o *PoolOptions) *Pool { return upstream.NewPool(o) }

// NewSpawner returns a spawner for the user's own servers. It starts their
// commands as host processes with a minimal environment and without a sandbox.
// Assign it to [Dialer.Spawn].
func NewSpawner() Spawner { return spawn.New(nil).Start }
