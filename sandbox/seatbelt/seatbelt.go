// Package seatbelt confines code on macOS by the system's own sandbox
// (sandbox-exec), with a profile made for each sandbox: programs and libraries
// of the system and the skill may be read, the sandbox's own directory changed,
// and nothing else. It is used only where an operator names it.
//
// There are no namespaces and few limits: what a command starts ends with its
// process group, and only what is written is limited. The layout is in a private
// directory of the host.
//
// sandbox-exec is deprecated by its vendor, and there is nothing in its place
// for programs that are not signed applications.
package seatbelt

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options adjust the back end. The zero value is ready to use.
type Options struct {
	// Read are further directories that code may read, as those of runtimes.
	Read []string
	// UID is the user and group that code is when this program is root; default is
	// that of nobody on macOS, -2.
	UID int
	// Dir is the directory for the private directories of sandboxes, which nobody
	// but this user may change; default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees, which nobody but this
	// user may change; default is loadout in the user's cache directory.
	Cache string
}

// Backend is the Seatbelt back end.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end.
func New(opts *Options) *Backend {
	b := &Backend{}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.UID == 0 {
		b.opts.UID = -2
	}
	return b
}

// Name is seatbelt.
func (b *Backend) Name() string { return "seatbelt" }

// Tier is [sandbox.Confined].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Confined }
