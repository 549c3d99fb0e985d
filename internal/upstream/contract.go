package upstream

import (
	"context"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// State is the connection state of a server.
type State string

// States of a server.
const (
	Init     State = "INIT"     // not connected yet, or connecting
	Ready    State = "READY"    // connected and healthy
	Degraded State = "DEGRADED" // unhealthy, keeps its last known tools
	Dead     State = "DEAD"     // connecting failed permanently or repeatedly
	// NotConfigured is the state of a server with a variable that has no value.
	NotConfigured State = "NOT_CONFIGURED"
)

// Protocol eras.
const (
	Modern = "modern" // 2026-07-28 and later
	Legacy = "legacy" // versions that start with initialize
)

// Process is a running server process.
type Process interface {
	io.Reader      // standard output of the process
	io.WriteCloser // standard input of the process; Close stops the process and waits for it
	// Stderr returns the last 64 KiB of standard error.
	Stderr() string
}

// Spawner starts the command of a server. ctx limits only the start.
type Spawner func(ctx context.Context, c *Config) (Process, error)

// Status describes a server for display and for programs.
type Status struct {
	Name      string        `json:"name"`
	Transport string        `json:"transport"`
	State     State         `json:"state"`
	Era       string        `json:"era"`
	Tools     int           `json:"tools"`
	Latency   time.Duration `json:"-"` // of the last health check or call
	Error     string        `json:"error"`
	Since     time.Time     `json:"since"`
	Stderr    string        `json:"-"`
	Warnings  []string      `json:"warnings,omitempty"` // tolerated protocol violations
}

// Listing lists the tools of a server.
type Listing struct {
	Tools []*mcp.Tool `json:"tools"` // sorted by name, filtered by Include and Exclude
	At    time.Time   `json:"at"`
	Era   string      `json:"era,omitempty"`
	// TTL is how long the list is valid according to the server; 0 if unknown.
	TTL time.Duration `json:"ttl,omitempty"`
	// Problems describes tools that were omitted or truncated, and configured
	// tools that are missing.
	Problems []string `json:"problems,omitempty"`
}

// Cache stores listings for later processes, by the digest of the
// configuration. It must be safe for concurrent use.
type Cache interface {
	Load(digest string) (*Listing, error) // returns nil and no error if there is no listing
	Store(digest string, l *Listing) error
}
