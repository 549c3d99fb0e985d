// Package seatbelt confines code on macOS with sandbox-exec and a profile for
// each sandbox. Code can read the programs and libraries of the system and the
// skill, and write to the directory of the sandbox. The backend is used only
// if the operator selects it.
//
// There are no namespaces and few limits: the process group of a command is
// killed when the command exits, and only the size of written data is limited.
// The layout is in a directory of the host.
//
// Apple has deprecated sandbox-exec, but offers no replacement for programs
// that are not signed applications.
package seatbelt

import (
	"github.com/loadout-dev/loadout/sandbox"
	"net"
)

// Options configures the backend. The zero value is ready to use.
type Options struct {
	// Read lists additional directories that code can read, such as those of
	// interpreters.
	Read []string
	// UID is the user and group that run the code if this program runs as root.
	// The default is -2, which is nobody on macOS.
	UID int
	// Dir is the parent of the sandboxes' directories. It must be writable only
	// by this user. The default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees. It must be writable
	// only by this user. The default is loadout in the user's cache directory.
	Cache string
}

// Backend runs code confined by sandbox-exec.
type Backend struct {
	opts   Options
	listen func(network, address string) (net.Listener, error) // [net.Listen]; only tests replace it
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a backend with the given options, which may be nil.
func New(opts *Options) *Backend {
	b := &Backend{listen: net.Listen}
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
