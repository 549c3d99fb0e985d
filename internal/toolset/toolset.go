// Package toolset gives packages of this module access to parts of package tools
// that embedders do not need. It never does anything itself: package tools sets
// its variables. Start with [With].
package toolset

import (
	"context"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Options holds the options of a tool set that are not in tools.Options.
type Options struct {
	// Pool holds the connections and is shared by several sets. It must start
	// commands with [Start]. Closing a set releases its servers, but does not
	// close the pool. If Pool is nil, the set creates and closes its own pool.
	Pool *upstream.Pool
	// Identity identifies the owner of connections to servers that have an
	// owner. Sets of the same pool share connections with the same identity. All
	// sets share connections to servers without an owner; but see Personal.
	Identity string
	// Personal reports whether connections to a server without an owner belong
	// to Identity too, for example because the user signed in to it. Nil means
	// false. tools.ForRuntime calls it.
	Personal func(c *upstream.Config) bool
	// PoolOptions configures the pool that the set creates.
	PoolOptions upstream.PoolOptions
	// Definitions replaces the files in the DefinitionsDir of tools.Options.
	Definitions DefinitionStore
	// HowToAccept returns the command with which the user can accept changes to a
	// server's tools in these files. If it is nil, messages do not name a command.
	HowToAccept func(server string) string
	// OtherService describes the command of a server that belongs neither to
	// the user nor to a skill, with its [execution.ServiceRequest.Project]. If it
	// is nil, such commands are refused.
	OtherService func(ctx context.Context, c *upstream.Config) (*execution.ServiceRequest, error)
}

// DefinitionStore stores the definitions of tools as first seen or accepted, to
// detect servers that change a tool after its approval. It identifies a server
// by the digest of its configuration. It must be safe for concurrent use, and
// must not modify its arguments.
type DefinitionStore interface {
	// Screen divides a listing into usable tools and the names of changed
	// tools. All tools in a server's first listing are accepted. Afterwards,
	// changed lists new and modified tools. If strict is set, they cannot be
	// used until they are accepted; otherwise they are accepted immediately.
	//
	// After an error, all tools of a strict server are quarantined, and the
	// tools of other servers are used unchecked.
	Screen(c *upstream.Config, l *upstream.Listing, strict bool) (usable []*mcp.Tool, changed []string, err error)
	// Accept accepts the definitions in a listing and returns the names of the
	// tools that changed.
	Accept(c *upstream.Config, l *upstream.Listing) (changed []string, err error)
	// Next returns the command with which the user can accept changes to the
	// named server's tools, or "".
	Next(server string) string
}

// With adds further options to o and returns it. It panics if o is not a
// *tools.Options.
func With[T any](o *T, further Options) *T {
	SetOptions(o, further)
	return o
}

// Set is a *tools.Set or a type that embeds it. The functions below panic for other
// types.
type Set interface{ Close() error }

// Functions that package tools provides.
var (
	// SetOptions sets further options in a *tools.Options; see [With]. It panics
	// for other types.
	SetOptions func(toolsOptions any, further Options)
	// Pool returns the pool that holds a set's connections.
	Pool func(s Set) *upstream.Pool
	// Start starts the command of a server that does not belong to the user, in
	// the sandbox of the set's runtime. ctx applies only to the start; the caller
	// must close the process.
	Start func(ctx context.Context, s Set, c *upstream.Config) (upstream.Process, error)
)
