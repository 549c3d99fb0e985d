// Package native isolates code with features of the Linux kernel alone: user,
// mount, PID, network, IPC, UTS and cgroup namespaces, a separate root
// directory, no capabilities, no_new_privs, Landlock, seccomp, resource limits,
// a memory watch, and control groups if available. It needs neither root nor a
// container engine.
//
// The first process of a sandbox is the current executable, started as a stage
// (see package stage). Any program that links this package can be the stage;
// [Options] can name another one.
package native

import (
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures the backend. The zero value is ready to use.
type Options struct {
	// Stage is an executable that links package stage. The default is the
	// current executable.
	Stage string
	// UID is the host user and group ID of code if this program runs as root.
	// The default is 65534. That user must not own any files.
	UID int
	// Dir is the parent of the directories that hold the changes of overlays.
	// If it exists, only the current user may be able to write to it. The
	// default is the directory run in the cache directory.
	Dir string
	// NoGroups disables the use of control groups.
	NoGroups bool
	// Spare makes the backend keep a spare process, the first process of the
	// next sandbox, after one was closed, for programs that start many. The
	// process has no configuration yet. It ends after a minute, and when this
	// program ends or closes the backend.
	Spare bool
}

// Backend runs code isolated by features of the Linux kernel.
type Backend struct {
	opts   Options
	spares spares
}

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

// Name returns "native".
func (b *Backend) Name() string { return "native" }

// Tier returns [sandbox.Isolated].
func (b *Backend) Tier() sandbox.Tier { return sandbox.Isolated }

// Close ends the spare process, and keeps none from then on. The backend can
// still start sandboxes.
func (b *Backend) Close() { b.spares.close() }
