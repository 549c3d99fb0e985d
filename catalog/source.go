package catalog

import (
	"context"

	"github.com/loadout-dev/loadout/skill"
)

// Source provides skills. A catalog calls List from one goroutine at a time,
// and Open concurrently. The catalog does not close its sources.
type Source interface {
	// Origin returns the label of the source, which the host program assigns.
	// It must be constant, unique in a catalog, and consist of lower-case
	// letters, digits, dots and hyphens. It must not be taken from the content
	// of the source.
	Origin() string
	// Scope returns the scope of the skills. It must be constant.
	Scope() Scope
	// List returns all skills of the source, with entries created by
	// [EntryOf]. A skill is unchanged if List returns the same entry as
	// before, or an equal entry created by EntryOf. A skill that cannot be
	// read is a problem, not an error. An error means that the whole source
	// could not be read; the catalog then keeps the previous listing.
	List(ctx context.Context) (Listing, error)
	// Open returns the current files of a skill. The caller must close the
	// bundle. If the skill no longer exists, the error of Open or of reading
	// its SKILL.md wraps [fs.ErrNotExist].
	Open(ctx context.Context, e *Entry) (*skill.Bundle, error)
}

// Watcher is a source that reports possible changes.
type Watcher interface {
	Source
	// Watch calls changed after possible changes. changed may block while the
	// source is read. Watch returns nil once ctx is done. If it returns an
	// error, the source must be polled.
	Watch(ctx context.Context, changed func()) error
}

// ServerSource is a source of the skills that an MCP server publishes. Their
// content is untrusted, and is fetched only when it is read: the file systems
// of Open are [skill.ManifestFS]. A catalog ignores the fields of such a skill
// that request permissions, servers or other skills.
type ServerSource interface {
	Source
	// Server returns the label of the server, which the host program assigns.
	// It must be constant.
	Server() string
	// CheckApproval returns an error unless a model may read a skill. A source
	// whose skills need approval returns the result of a.CheckServed, others nil.
	CheckApproval(ctx context.Context, e *Entry, session string, a Approvals) error
	// Head returns a skill without its instructions, as the server lists it. It
	// fetches no file.
	Head(e *Entry) (*skill.Skill, error)
	// Find asks the server for a skill that it may not have listed, so that the
	// next List includes it. ref is a path in the source, or a URI. The error
	// wraps [fs.ErrNotExist] if the server has no such skill.
	Find(ctx context.Context, ref string) error
}

// Approvals checks the user's approvals of skills of MCP servers. Because only sources of
// such skills call it, programs without them do not link its implementation.
type Approvals interface {
	// CheckServed returns an error unless the user approved the current files of a
	// skill. It fetches no file.
	CheckServed(ctx context.Context, e *Entry, session string) error
}

// Listing holds the skills and problems of a source. The caller of [Source.List]
// owns both slices, but must not modify the entries.
type Listing struct {
	Entries []*Entry
	// Layer, if not nil, holds the skills instead of Entries. It is for sources
	// that several catalogs share. While the skills have not changed, a source
	// returns the same layer, or one that shares its index.
	Layer    *Layer
	Problems []Problem
}
