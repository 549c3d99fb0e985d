// Package landlock confines code on the host's own view, for systems where no
// namespaces can be made: access rules for files, TCP and signals by Landlock,
// no sockets and no calls that look at other processes by seccomp, limits, a
// watch over memory and disk, and a guard that ends everything with the sandbox.
// It is weaker than a sandbox with namespaces, so that it is used only where an
// operator names it.
//
// The layout is in a private directory of the host, removed with the sandbox, or
// at the next start where this program was killed. There is no /proc, no
// /dev/shm, no /etc/passwd, and no network. Where code is the user of this program,
// it cannot change modes, owners and attributes by name, so that chmod and
// programs that rely on it fail: Landlock would let it do so to all of the
// user's files. It can still change their times.
package landlock

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options adjust the back end. The zero value is ready to use.
type Options struct {
	// Stage is an executable that links internal/stage; default is this one.
	Stage string
	// UID is the user and group that code is when this program is root; default
	// 65534. It must not be a user who owns anything, and it must be able to reach
	// Dir and Cache.
	UID int
	// Dir is the directory for the private directories of sandboxes, which nobody
	// but this user may change; default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees, which nobody but this
	// user may change; default is loadout in the user's cache directory, for root
	// /var/cache/loadout.
	Cache string
	// NoGroups leaves control groups alone.
	NoGroups bool
}

// Backend is the Landlock back end.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end.
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

// Name is landlock.
func (b *Backend) Name() string { return "landlock" }

// Tier is [sandbox.Confined].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Confined }
