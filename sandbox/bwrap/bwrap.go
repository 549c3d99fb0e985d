// Package bwrap isolates code by bubblewrap, for systems that let that program
// make user namespaces and not ours. What is in the sandbox, and what is
// enforced there, is that of sandbox/native: bubblewrap makes the namespaces and
// mounts, and its first process is our stage, which sets limits, seccomp and,
// where the kernel has it, Landlock before anything runs.
//
// Read-only trees come from verified copies on the host (sandbox/internal/bundle),
// as bubblewrap can only mount. It cannot limit the number of files, which are watched.
//
// bubblewrap started by root leaves code the user of that number for the kernel,
// who may write most of /proc/sys, core_pattern among it. So it never is: where
// this program is root, it is started as another user.
package bwrap

import (
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// Options adjust the back end. The zero value is ready to use.
type Options struct {
	// Program is the bubblewrap to use; default is bwrap in PATH.
	Program string
	// Stage is an executable that links internal/stage; default is this one.
	Stage string
	// UID is the user and group of the host that bubblewrap is started as when
	// this program is root; default 65534. It must not be a user who owns
	// anything, and it must be able to reach Cache.
	UID int
	// Cache is the directory for verified copies of trees, which nobody but this
	// user may change; default is loadout in the user's cache directory, for root
	// /var/cache/loadout.
	Cache string
	// NoGroups leaves control groups alone.
	NoGroups bool
}

// Backend is the bubblewrap back end.
type Backend struct {
	opts Options

	mu    sync.Mutex
	found *program // guarded by mu; nil until one was found
}

// program is a bubblewrap.
type program struct {
	path  string
	major int
	minor int
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end.
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

// Name is bwrap.
func (b *Backend) Name() string { return "bwrap" }

// Tier is [sandbox.Isolated].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Isolated }
