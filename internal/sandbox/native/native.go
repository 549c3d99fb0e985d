// Package native isolates code with the Linux kernel alone: user, mount, PID,
// network, IPC, UTS and cgroup namespaces, its own root directory, no
// capabilities, no_new_privs, Landlock, seccomp, resource limits, a memory
// watch, and control groups if available. It needs neither root nor a container
// engine.
//
// The first process of a sandbox is this executable, started as a stage (see
// package stage). Any program that links this package can be one; [Options] can
// name another.
package native

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configure the back end. The zero value is ready to use.
type Options struct {
	// Stage is an executable that links package stage. The default is this
	// executable.
	Stage string
	// UID is the host user and group of code if this program is root. The
	// default is 65534. The user must not own anything.
	UID int
	// NoGroups disables control groups.
	NoGroups bool
}

// Backend is the native back end.
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

// Name returns "native".
func (b *Backend) Name() string { return "native" }

// Tier returns [sandbox.Isolated].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Isolated }
