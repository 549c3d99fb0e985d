// Package auto provides a sandbox backend for any machine: the one that the
// operator names, or the first that isolates enough and works on this machine.
// It never falls back to a weaker backend than requested. Start with [New].
package auto

import (
	"github.com/loadout-dev/loadout/internal/sandbox/selection"
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures [New]. The zero value selects the best backend that
// isolates code.
type Options struct {
	// Name selects a backend: native, bwrap, container, landlock, seatbelt or
	// process. "" or "auto" means the first usable one.
	Name string
	// MinTier is the lowest acceptable tier. Zero means [sandbox.Isolated], or
	// [sandbox.Limited] if Name selects a backend.
	MinTier sandbox.Tier
	// Stage is the path of an executable that imports this package. Linux
	// backends start it as the first process of a sandbox. The default is the
	// current executable.
	Stage string
	// Cache is the directory for verified copies of skills. The default is
	// loadout in the user's cache directory, or /var/cache/loadout for root.
	Cache string
	// Image is the image for the container backend. The default is
	// python:3-slim. It is never pulled.
	Image string
	// Allow reports whether the process backend may run code with the given
	// digest. Nil means no code. It must be safe for concurrent use.
	Allow func(digest string) bool
}

// New returns a backend that chooses, on first use, the backend to which it
// delegates; nil options mean the defaults. New itself probes nothing. The
// backend's name is "auto" before the choice and that of the chosen backend
// afterwards. If no backend can be used, the methods return errors that match
// [*sandbox.UnavailableError] and list what each backend lacks and how to fix
// it. The backend then chooses again after 30 seconds.
func New(opts *Options) sandbox.Backend {
	if opts == nil {
		opts = &Options{}
	}
	return selection.New(&selection.Options{
		Candidates: selection.Candidates(&selection.Settings{Stage: opts.Stage, Cache: opts.Cache, Image: opts.Image, Allow: opts.Allow}),
		Name:       opts.Name, MinTier: opts.MinTier,
	})
}
