// Package native isolates code by what the Linux kernel has, without another
// program: namespaces of users, mounts, processes, network, IPC, host name and
// control groups; a root directory of its own; no capabilities, no_new_privs,
// Landlock, seccomp, resource limits, a watch over memory, and control groups
// where any may be made. It needs no root and no container engine.
//
// The first process of a sandbox is our own executable, started as a stage (see
// internal/stage). A program that links this package is one by itself; another
// can be named in [Options].
package native

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options adjust the back end. The zero value is ready to use.
type Options struct {
	// Stage is an executable that links internal/stage; default is this one.
	Stage string
	// UID is the user and group of the host that code is when this program is
	// root; default 65534. It must not be a user who owns anything.
	UID int
	// NoGroups leaves control groups alone.
	NoGroups bool
}

// Backend is the native back end.
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

// Name is native.
func (b *Backend) Name() string { return "native" }

// Tier is [sandbox.Isolated].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Isolated }
