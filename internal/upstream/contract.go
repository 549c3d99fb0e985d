package upstream

import (
	"context"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// State is the state of a server.
type State string

// The states.
const (
	Init     State = "INIT"     // not connected yet, or connecting
	Ready    State = "READY"    // connected and healthy
	Degraded State = "DEGRADED" // unhealthy, keeps its last known tools
	Dead     State = "DEAD"     // connecting failed permanently or repeatedly
	// NotConfigured is the state of a server with a variable that has no value.
	NotConfigured State = "NOT_CONFIGURED"
)

// Eras of the protocol.
const (
	Modern = "modern" // 2026-07-28 and later
	Legacy = "legacy" // versions that start with initialize
)

// Process is a running server process.
type Process interface {
	io.Reader      // its standard output
	io.WriteCloser // its standard input; Close stops the process and waits
	// Stderr returns the last 64 KiB of standard error.
	Stderr() string
}

// Spawner starts the command of a server. ctx limits the start only.
type Spawner func(ctx context.Context, c *Config) (Process, error)

// Status describes the state of a server, for display and programs.
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

// Listing is a list of the tools of a server.
type Listing struct {
	Tools []*mcp.Tool `json:"tools"` // sorted by name, filtered by Include and Exclude
	At    time.Time   `json:"at"`
	Era   string      `json:"era,omitempty"`
	// TTL is how long the server considers the list valid; 0 if unknown.
	TTL time.Duration `json:"ttl,omitempty"`
	// Problems describe omitted or truncated tools, and configured tools that
	// are missing.
	Problems []string `json:"problems,omitempty"`
}

// Cache stores listings by the digest of a configuration, for later processes.
// It is safe for concurrent use.
type Cache interface {
	Load(digest string) (*Listing, error) // nil without an error if there is none
	Store(digest string, l *Listing) error
}
