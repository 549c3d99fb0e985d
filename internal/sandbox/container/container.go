// Package container isolates code in a container of Docker or Podman, by their
// command-line clients. It is for systems without the namespaces of Linux, and
// for skills that need what an image has.
//
// A container has no network, a read-only root, no capabilities, no new
// privileges, limits by control groups, and file systems in memory for all that
// is written. It idles as one user; commands run in it as another, so that they
// can be ended together, and cannot end it. It is removed with the sandbox, or
// at the next start where this program was killed.
//
// An engine may leave out what it was asked for. So each container is looked at
// from inside before it has anything to run: one without seccomp, with
// capabilities or with a network is not used, and what limits are not there are
// told as not enforced.
//
// The image must have sh, tar and sleep. It is never fetched unless that is
// asked for.
package container

import (
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// DefaultImage is the image of sandboxes for which none is named. It is not
// fetched by itself.
const DefaultImage = "python:3-slim"

// Options adjust the back end. The zero value is ready to use.
type Options struct {
	// Engine is the client to use, docker or podman or the path of one; default is
	// whichever of them is found, in this order.
	Engine string
	// Image is what containers are made of; default is [DefaultImage].
	Image string
	// Pull fetches the image where it is missing.
	Pull bool
	// Runtime is the engine's runtime, as runsc; default is the engine's own.
	Runtime string
	// Cache is the directory for verified copies of trees, which nobody but this
	// user may change, and which the engine sees; default is loadout in the user's
	// cache directory, for root /var/cache/loadout.
	Cache string
}

// Backend is the container back end.
type Backend struct {
	opts Options

	mu    sync.Mutex
	swept bool // guarded by mu
}

var _ sandbox.Backend = (*Backend)(nil)

// New returns the back end.
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

// Name is container.
func (b *Backend) Name() string { return "container" }

// Tier is [sandbox.Isolated], with the runtime runsc [sandbox.Virtual].
func (b *Backend) Tier() sandbox.Tier {
	if b.opts.Runtime == "runsc" {
		return sandbox.Virtual
	}
	return sandbox.Isolated
}
