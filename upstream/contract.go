package upstream

import (
	"context"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// State says how it is with a server.
type State string

// The states.
const (
	Init     State = "INIT"     // not connected yet in this process, or on the way
	Ready    State = "READY"    // connected and healthy
	Degraded State = "DEGRADED" // not healthy: its last known tools are kept
	Dead     State = "DEAD"     // connecting failed for good, or again and again
)

// Eras of the protocol.
const (
	Modern = "modern" // 2026-07-28 and later
	Legacy = "legacy" // those that begin with initialize
)

// Process is a running server on standard input and output.
type Process interface {
	io.Reader      // its standard output
	io.WriteCloser // its standard input; Close ends it by the stop ladder, and waits
	// Stderr is the last of what it wrote to standard error, at most 64 KiB.
	Stderr() string
}

// Spawner starts the command of a server. ctx bounds the start only.
type Spawner func(ctx context.Context, c *Config) (Process, error)

// Status is how it is with a server, for people and programs.
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
	Warnings  []string      `json:"warnings,omitempty"` // oddities that are borne
}

// Listing is what a server said of its tools, and when.
type Listing struct {
	Tools []*mcp.Tool `json:"tools"` // in order of their names, after Include and Exclude
	At    time.Time   `json:"at"`
	Era   string      `json:"era,omitempty"`
	// TTL is how long the server says it holds; 0 is not said.
	TTL time.Duration `json:"ttl,omitempty"`
	// Problems are tools left out or cut short, and those of the configuration that
	// are missing.
	Problems []string `json:"problems,omitempty"`
}

// Cache keeps listings by the digest of a configuration, for processes to come.
// It is safe for concurrent use.
type Cache interface {
	Load(digest string) (*Listing, error) // nil and no error where there is none
	Store(digest string, l *Listing) error
}
