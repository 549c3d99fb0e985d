// Package toolset gives packages of this module access to parts of package tools
// that embedders do not need. It never does anything itself: package tools sets
// its variables. Start with [With].
package toolset

import (
	"context"

	"github.com/loadout-dev/loadout/internal/execution"
	"github.com/loadout-dev/loadout/internal/upstream"
)

// Options are options of a set in addition to tools.Options.
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
	// OtherService describes the command of a server that belongs neither to
	// the user nor to a skill, with its [execution.ServiceRequest.Project]. If it
	// is nil, such commands are refused.
	OtherService func(ctx context.Context, c *upstream.Config) (*execution.ServiceRequest, error)
}

// With adds further options to o, a *tools.Options, and returns o.
func With[T any](o *T, further Options) *T {
	SetOptions(o, further)
	return o
}

// Set is a *tools.Set.
type Set interface{ Close() error }

// Functions that package tools provides.
var (
	// SetOptions sets further options in a *tools.Options; see [With].
	SetOptions func(toolsOptions any, further Options)
	// Pool returns the pool that holds a set's connections.
	Pool func(s Set) *upstream.Pool
	// Start starts the command of a server that does not belong to the user, in
	// the sandbox of the set's runtime. ctx applies only to the start; the caller
	// must close the process.
	Start func(ctx context.Context, s Set, c *upstream.Config) (upstream.Process, error)
)
