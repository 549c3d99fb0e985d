// Package container isolates code in Docker or Podman containers, using their command-line
// clients. It serves systems without Linux namespaces, and skills that need the content of
// an image.
//
// A container has no network, a read-only root, no capabilities, no_new_privs, control
// group limits and in-memory file systems for all written data. One user idles in it.
// Commands run as another user, so that they can be killed together but cannot kill the
// container. It is removed with the sandbox. If this program was killed, the next start
// removes it.
//
// An engine may ignore options. So each container is inspected from inside before it runs
// code. A container without seccomp, with capabilities or with a network is rejected, and
// missing limits are reported as not enforced.
//
// The image must contain sh, tar and sleep. It is only pulled if [Options.Pull] is set.
package container

import (
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// DefaultImage is the default image. It is not pulled automatically.
const DefaultImage = "python:3-slim"

// Options configure the back end. The zero value is ready to use.
type Options struct {
	// Engine is the client: docker, podman or the path of one. The default is the first
	// one found, in this order.
	Engine string
	// Image is the image of containers. The default is [DefaultImage].
	Image string
	// Pull pulls a missing image.
	Pull bool
	// Runtime is the engine's runtime, such as runsc. The default is the engine's own.
	Runtime string
	// Cache is the directory for verified copies of trees. Only this user may be able to
	// change it, and the engine must see it. The default is loadout in the user's cache
	// directory, for root /var/cache/loadout.
	Cache string
}

// Backend is the container back end.
type Backend struct {
	opts Options

	mu    sync.Mutex
	swept bool // guarded by mu
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end. opts may be nil.
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
