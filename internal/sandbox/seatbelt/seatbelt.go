// Package seatbelt confines code on macOS with sandbox-exec and a profile for
// each sandbox. Code can read the system's programs and libraries and the
// skill, and write to the sandbox's own directory. It is only used if the
// operator names it.
//
// There are no namespaces and few limits: the process group of a command ends
// with it, and only written data is limited. The layout is in a directory of
// the host.
//
// Apple deprecated sandbox-exec, but has no replacement for programs that are
// not signed applications.
package seatbelt

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configure the back end. The zero value is ready to use.
type Options struct {
	// Read are additional readable directories, such as those of interpreters.
	Read []string
	// UID is the user and group of code if this program is root. The default is
	// -2, nobody on macOS.
	UID int
	// Dir contains the directories of sandboxes. Only this user may be able to
	// change it. The default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees. Only this user may
	// be able to change it. The default is loadout in the user's cache
	// directory.
	Cache string
}

// Backend is the Seatbelt back end.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end. opts may be nil.
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

// Name returns "seatbelt".
func (b *Backend) Name() string { return "seatbelt" }

// Tier returns [sandbox.Confined].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Confined }
