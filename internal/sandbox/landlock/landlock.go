// Package landlock confines code in the host's view of the system, for systems
// without namespaces. Landlock restricts files, TCP and signals, seccomp
// refuses sockets and access to other processes, and there are limits, a watch
// over memory and disk, and a guard that ends all processes with the sandbox.
// It is weaker than namespaces, so it is only used if the operator names it.
//
// The layout is in a directory of the host. It is removed with the sandbox, or
// at the next start if this program was killed. There is no /proc, /dev/shm,
// /etc/passwd or network. If code runs as the user of this program, it cannot
// change modes, owners and attributes by name, because Landlock would permit
// that for all files of the user. So chmod fails, and programs that need it.
// Code can still change file times.
package landlock

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configure the back end. The zero value is ready to use.
type Options struct {
	// Stage is an executable that links package stage. The default is this
	// executable.
	Stage string
	// UID is the user and group of code if this program is root. The default is
	// 65534. The user must not own anything and must be able to reach Dir and
	// Cache.
	UID int
	// Dir contains the directories of sandboxes. Only this user may be able to
	// change it. The default is run in Cache.
	Dir string
	// Cache is the directory for verified copies of trees. Only this user may
	// be able to change it. The default is loadout in the user's cache
	// directory, for root /var/cache/loadout.
	Cache string
	// NoGroups disables control groups.
	NoGroups bool
}

// Backend is the Landlock back end.
type Backend struct{ opts Options }

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end. opts may be nil.
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
