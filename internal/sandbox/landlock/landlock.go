// Package landlock confines code that sees the host's file system, for systems
// without namespaces. Landlock restricts files, TCP and signals. Seccomp denies
// sockets and access to other processes. Memory and disk use are watched. A
// guard kills all processes when the sandbox is closed. This is weaker than
// namespaces, so it is used only if the operator selects it.
//
// The layout is in a directory of the host. It is removed with the sandbox or,
// if this program is killed, at the next start. There is no /proc, /dev/shm,
// /etc/passwd or network.
//
// If code runs as the user of this program, it cannot change modes, owners and
// attributes by name, because Landlock would permit that for all of the user's
// files. So chmod fails, and programs that need it fail too. Code can still
// change file times.
package landlock

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures the backend. The zero value is ready to use.
type Options struct {
	// Stage is an executable that links package stage. The default is the
	// current executable.
	Stage string
	// UID is the user and group that run the code if this program runs as root.
	// The default is 65534. That user must not own any files, and must have
	// access to Dir and Cache.
	UID int
	// Dir is the parent of the sandboxes' directories. It must be writable only
	// by this user. The default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees. It must be writable
	// only by this user. The default is loadout in the user's cache directory,
	// or /var/cache/loadout for root.
	Cache string
	// NoGroups disables the use of control groups.
	NoGroups bool
}

// Backend runs code confined by Landlock and seccomp.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns a backend with the given options, which may be nil.
func New(opts *Options) *Backend {
	b := &Backend{}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.UID == 0 {
		b.opts.UID = 65534
	}
	return b
}

// Name returns "landlock".
func (b *Backend) Name() string { return "landlock" }

// Tier returns [sandbox.Confined].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Confined }
