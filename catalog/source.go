package catalog

import (
	"context"

	"github.com/loadout-dev/loadout/skill"
)

// Source provides skills. A catalog calls List from one goroutine at a time,
// and Open concurrently.
type Source interface {
	// Origin returns the label of the source, which the host assigns. It must
	// be unique in a catalog and consist of lower-case letters, digits, dots
	// and hyphens. It must not be taken from the content of the source.
	Origin() string
	// Scope returns the scope of the skills.
	Scope() Scope
	// List returns all skills of the source, with entries created by
	// [EntryOf]. A skill is unchanged if List returns the same entry as
	// before, or an equal entry created by EntryOf. A skill that cannot be
	// read is a problem, not an error. An error means that the whole source
	// could not be read; the catalog then keeps the previous listing.
	List(ctx context.Context) (Listing, error)
	// Open returns the current files of a skill. The caller must close the
	// bundle. The error wraps [fs.ErrNotExist] if the skill no longer exists.
	Open(ctx context.Context, e *Entry) (*skill.Bundle, error)
}

// Watcher is a source that reports possible changes.
type Watcher interface {
	Source
	// Watch calls changed after possible changes. It returns nil once ctx is
	// done. If it returns earlier or with an error, the source must be polled.
	Watch(ctx context.Context, changed func()) error
}

// Listing holds the skills and problems of a source. The caller owns both
// slices.
type Listing struct {
	Entries  []*Entry
	Problems []Problem
}
