package tools

import (
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Types that a program needs for its own MCP servers. A [Pool] connects to
// servers as described by their [ServerConfig]. A [Set] finds and calls their
// tools.
type (
	// ServerConfig is the normalized configuration of an MCP server. It must
	// not be modified while a set or a pool uses it.
	ServerConfig = upstream.Config
	// Dialer connects to servers. Its zero value connects only to URLs, and
	// starts no commands. It is safe for concurrent use.
	Dialer = upstream.Dialer
	// Spawner starts the command of a stdio server. It must be safe for
	// concurrent use. Its context applies only to the start.
	Spawner = upstream.Spawner
	// Process is a running stdio server. Close stops it and waits for it to
	// exit.
	Process = upstream.Process
	// Pool shares connections to servers. It is safe for concurrent use.
	// Closing it closes all connections and waits for processes to exit.
	Pool = upstream.Pool
	// PoolOptions configures a [Pool]. The zero value allows 100 connections
	// and closes those that were unused for 10 minutes.
	PoolOptions = upstream.PoolOptions
	// Variables holds the values that a server's configuration may refer to.
	// The zero value has none.
	Variables = upstream.Variables
)

// NewSpawner returns a spawner for the user's own servers. It starts their
// commands as host processes with a minimal environment and without a sandbox.
// The environment is PATH, HOME and similar variables, and those configured for
// the server. Closing a process closes its input, then sends SIGTERM, then kills
// its process group, two seconds apart. Assign the spawner to Dialer.Spawn.
func NewSpawner() Spawner { return spawn.New(nil).Start }
