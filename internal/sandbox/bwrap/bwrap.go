// Package bwrap isolates code with bubblewrap, for systems that allow only that
// program to create user namespaces. The sandbox is the same as that of package
// native: bubblewrap creates the namespaces and mounts, and its first process
// is the stage, which sets limits, seccomp and, if available, Landlock.
//
// Read-only trees are mounted from verified copies on the host (package
// bundle), because bubblewrap cannot copy files into the sandbox. It cannot
// limit the number of files, so the stage watches that number.
//
// If root ran bubblewrap, the kernel would treat the code as root, which may
// write most of /proc/sys, including core_pattern. So if this program runs as
// root, it runs bubblewrap as another user.
package bwrap

import (
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures the backend. The zero value is ready to use.
type Options struct {
	// Program is the bubblewrap executable. The default is bwrap in PATH.
	Program string
	// Stage is an executable that links package stage. The default is the
	// current executable.
	Stage string
	// UID is the host user and group ID of bubblewrap if this program runs as
	// root. The default is 65534. That user must not own any files, and must
	// have access to Cache.
	UID int
	// Cache is the directory for verified copies of trees. It must be writable
	// only by this user. The default is loadout in the user's cache directory,
	// or /var/cache/loadout for root.
	Cache string
	// NoGroups disables the use of control groups.
	NoGroups bool
}

// Backend runs code in sandboxes created by bubblewrap.
type Backend struct {
	opts Options

	mu    sync.Mutex
	found *program // guarded by mu; nil until found
}

// program holds the path and version of the installed bubblewrap.
type program struct {
	path  string
	major int
	minor int
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a backend with the given options, which may be nil.
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
