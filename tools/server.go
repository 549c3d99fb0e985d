package tools

import (
	"github.com/loadout-dev/loadout/internal/spawn"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// The names that a program needs for MCP servers of its own. A [Pool] connects
// to servers as their [ServerConfig] says; a [Set] finds and calls their tools.
type (
	// ServerConfig is the configuration of one MCP server in normal form.
	ServerConfig = upstream.Config
	// Owner identifies who provides a server.
	Owner = upstream.Owner
	// ServerFile is what a configuration file says about MCP servers.
	ServerFile = upstream.File
	// Dialer connects to servers; its zero value connects over HTTP alone.
	Dialer = upstream.Dialer
	// Spawner starts the command of a stdio server.
	Spawner = upstream.Spawner
	// Process is a running stdio server.
	Process = upstream.Process
	// Pool shares connections to servers. Close ends them all.
	Pool = upstream.Pool
	// PoolOptions are the settings of a Pool.
	PoolOptions = upstream.PoolOptions
	// Variables are the values that a server's configuration may refer to.
	Variables = upstream.Variables
)

// NewPool returns a pool without connections. The caller closes it.
func NewPool(o *PoolOptions) *Pool { return upstream.NewPool(o) }

// NewSpawner returns a spawner that starts the commands of the user's own
// servers as processes of this machine, with a minimal environment and without
// a sandbox. Use it as [Dialer.Spawn].
func NewSpawner() Spawner { return spawn.New(nil).Start }
