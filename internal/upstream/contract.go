package upstream

import (
	"context"
	"encoding/json"
	"io"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// State is the connection state of a server.
type State string

// Connection states.
const (
	Init     State = "INIT"     // not connected yet, or connecting
	Ready    State = "READY"    // connected and healthy
	Degraded State = "DEGRADED" // unhealthy; keeps its last known tools
	Dead     State = "DEAD"     // connecting failed permanently or repeatedly
	// NotConfigured is the state of a server whose configuration has a variable
	// without a value.
	NotConfigured State = "NOT_CONFIGURED"
)

// Protocol eras, which differ in how a connection starts.
const (
	Modern = "modern" // 2026-07-28 and later
	Legacy = "legacy" // versions that start with initialize
)

// Process is a running server process.
type Process interface {
	io.Reader      // standard output of the process
	io.WriteCloser // standard input of the process; Close stops the process and waits for it to exit
	// Stderr returns the last 64 KiB of standard error.
	Stderr() string
}

// Spawner starts a server's command. ctx applies only to the start.
type Spawner func(ctx context.Context, c *Config) (Process, error)

// Status describes the state of a server.
type Status struct {
	Name      string        `json:"name"`
	Transport string        `json:"transport"`
	State     State         `json:"state"`
	Era       string        `json:"era"`
	Tools     int           `json:"tools"`
	Latency   time.Duration `json:"-"` // duration of the last health check or call
	Error     string        `json:"error"`
	Since     time.Time     `json:"since"`
	Stderr    string        `json:"-"`
	Warnings  []string      `json:"warnings,omitempty"` // tolerated protocol violations
}

// Listing is a server's tool list and the server's description of itself. All
// strings are untrusted.
type Listing struct {
	Tools []*mcp.Tool `json:"tools"` // sorted by name, filtered by Include and Exclude
	// Title and Description are those of the server, of at most [MaxAbout] bytes
	// each. Instructions are its instructions, of at most [MaxInstructions] bytes.
	Title        string    `json:"title,omitempty"`
	Description  string    `json:"description,omitempty"`
	Instructions string    `json:"instructions,omitempty"`
	At           time.Time `json:"at"`
	Era          string    `json:"era,omitempty"`
	// TTL is how long the list is valid, as reported by the server; 0 if
	// unknown.
	TTL time.Duration `json:"ttl,omitempty"`
	// Problems describes tools that are omitted, truncated or missing.
	Problems []string `json:"problems,omitempty"`

	modified  time.Time       // modification time of the file from which the listing was loaded
	summaries []storedSummary // summaries in the cache when the listing was loaded
}

// Cache stores listings for later processes, keyed by configuration digest. It
// must be safe for concurrent use.
type Cache interface {
	Load(digest string) (*Listing, error) // returns nil and no error if there is no listing
	Store(digest string, l *Listing) error
}

// SummaryCache is a [Cache] that stores summaries with a listing, so that a
// process that needs only them need not read the listing. A key identifies
// everything else that a summary depends on, including its format.
type SummaryCache interface {
	Cache
	// LoadSummary returns the summary that is stored with the current listing
	// under the given key, or nil and no error if there is none.
	LoadSummary(digest, key string) (json.RawMessage, error)
	// StoreSummary stores a summary, unless the cache contains a listing other
	// than l. It may discard other summaries.
	StoreSummary(digest string, l *Listing, key string, summary json.RawMessage) error
}
