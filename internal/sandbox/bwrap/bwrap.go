// Package bwrap isolates code with bubblewrap, for systems that allow that
// program to create user namespaces but not others. The sandbox is the same as
// that of package native: bubblewrap creates the namespaces and mounts, and its
// first process is the stage, which sets limits, seccomp and, if available,
// Landlock.
//
// Read-only trees come from verified copies on the host (package bundle),
// because bubblewrap can only mount. It cannot limit the number of files, so
// they are watched.
//
// If root started bubblewrap, the kernel would treat code as root, who may
// write most of /proc/sys, including core_pattern. So if this program is root,
// it starts bubblewrap as another user.
package bwrap

import (
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options configure the back end. The zero value is ready to use.
type Options struct {
	// Program is the bubblewrap executable. The default is bwrap in PATH.
	Program string
	// Stage is an executable that links package stage. The default is this
	// executable.
	Stage string
	// UID is the host user and group that bubblewrap runs as if this program is
	// root. The default is 65534. The user must not own anything and must be
	// able to reach Cache.
	UID int
	// Cache is the directory for verified copies of trees. Only this user may
	// be able to change it. The default is loadout in the user's cache
	// directory, for root /var/cache/loadout.
	Cache string
	// NoGroups disables control groups.
	NoGroups bool
}

// Backend is the bubblewrap back end.
type Backend struct {
	opts Options

	mu    sync.Mutex
	found *program // guarded by mu; nil until found
}

// program is an installed bubblewrap.
type program struct {
	path  string
	major int
	minor int
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end. opts may be nil.
func New(opts *Options) *Backend {
	b := &Backend{}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Program == "" {
		b.opts.Program = "bwrap"
	}
	if b.opts.UID == 0 {
		b.opts.UID = 65534
	}
	return b
}

// Name returns "bwrap".
func (b *Backend) Name() string { return "bwrap" }

// Tier returns [sandbox.Isolated].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Isolated }
