// Package container isolates code in Docker or Podman containers by calling
// their command-line clients. It is for systems without Linux namespaces, and
// for skills that need the content of an image.
//
// A container has no network, a read-only root, no capabilities, no_new_privs,
// control group limits, and in-memory file systems for all written data. One
// user keeps the container running. Commands run as another user, so that they
// can be killed together but cannot kill the container. Closing the sandbox
// removes the container. If this program is killed, the container is removed
// the next time it starts.
//
// Engines may ignore options. Therefore each container is inspected from inside
// before it runs code. A container without seccomp, with capabilities or with a
// network is rejected, and missing limits are reported as not enforced.
//
// The image must contain sh, tar and sleep. It is pulled only if [Options.Pull]
// is set.
package container

import (
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// DefaultImage is the image to use if [Options.Image] is empty. It is not
// pulled unless [Options.Pull] is set.
const DefaultImage = "python:3-slim"

// Options configures the backend. The zero value is ready to use.
type Options struct {
	// Engine is docker, podman, or the path of a client. The default is the
	// first of docker and podman that is found.
	Engine string
	// Image is the image to run. The default is [DefaultImage].
	Image string
	// Pull allows the backend to pull a missing image.
	Pull bool
	// Runtime is the container runtime to use, such as runsc. The default is
	// the engine's default runtime.
	Runtime string
	// Cache is the directory for verified copies of trees. It must be writable
	// only by this user and accessible to the engine. The default is loadout in
	// the user's cache directory, or /var/cache/loadout for root.
	Cache string
}

// Backend runs code in Docker or Podman containers.
type Backend struct {
	opts Options

	mu    sync.Mutex
	swept bool // guarded by mu
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns a backend with the given options, which may be nil.
func New(opts *Options) *Backend {
	b := &Backend{}
	if opts != nil {
		b.opts = *opts
	}
	if b.opts.Image == "" {
		b.opts.Image = DefaultImage
	}
	return b
}

// Name returns "container".
func (b *Backend) Name() string { return "container" }

// Tier returns [sandbox.Isolated], or [sandbox.Virtual] with the runtime runsc.
func (b *Backend) Tier() sandbox.Tier {
	if b.opts.Runtime == "runsc" {
		return sandbox.Virtual
	}
	return sandbox.Isolated
}
