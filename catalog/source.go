package catalog

import (
	"context"

	"github.com/loadout-dev/loadout/skill"
)

// Source is a place skills come from. Its methods are called by one catalog,
// List by one goroutine at a time and Open by many.
type Source interface {
	// Origin is the label the host gave the source: unique in a catalog, of
	// lower-case letters, digits, dots and hyphens, never taken from the
	// source's own content.
	Origin() string
	// Scope is the scope of its skills.
	Scope() Scope
	// List returns all skills of the source. The entry of a skill that has not
	// changed is the one that was returned before, and no other: that is how
	// changes are told. A skill that cannot be read is a problem, not an
	// error. An error means that the source as a whole could not be read; the
	// catalog then keeps what it knew of it.
	List(ctx context.Context) (Listing, error)
	// Open returns the files of a skill as they are now. The caller closes
	// the bundle. The error wraps [fs.ErrNotExist] where the skill is gone.
	Open(ctx context.Context, e *Entry) (*skill.Bundle, error)
}

// Watcher is a source that can tell when it may have changed.
type Watcher interface {
	Source
	// Watch calls changed after changes until ctx ends, then returns nil.
	// Any other return means that the source has to be polled.
	Watch(ctx context.Context, changed func()) error
}

// Listing is what a source offers. Both slices belong to the caller.
type Listing struct {
	Entries  []*Entry
	Problems []Problem
}
