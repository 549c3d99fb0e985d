package selection

import (
	"github.com/loadout-dev/loadout/internal/sandbox/bwrap"
	"github.com/loadout-dev/loadout/internal/sandbox/container"
	"github.com/loadout-dev/loadout/internal/sandbox/landlock"
	"github.com/loadout-dev/loadout/internal/sandbox/native"
	"github.com/loadout-dev/loadout/internal/sandbox/process"
	"github.com/loadout-dev/loadout/internal/sandbox/seatbelt"
	"github.com/loadout-dev/loadout/sandbox"
)

// Settings configures the backends of [Candidates]. The zero value is ready to
// use.
type Settings struct {
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
	// Spare makes backends that can do so keep a spare process for the next
	// sandbox, until [Backend.Close].
	Spare bool
}

// Candidates returns the backends in order of preference. native, bwrap and
// container isolate code, landlock and seatbelt confine it, and process does
// neither. All exist on every system; their probes report whether they can be
// used. s may be nil.
func Candidates(s *Settings) []sandbox.Backend {
	if s == nil {
		s = &Settings{}
	}
	return []sandbox.Backend{
		native.New(&native.Options{Stage: s.Stage, Spare: s.Spare}),
		bwrap.New(&bwrap.Options{Stage: s.Stage, Cache: s.Cache}),
		container.New(&container.Options{Image: s.Image, Cache: s.Cache}),
		landlock.New(&landlock.Options{Stage: s.Stage, Cache: s.Cache}),
		seatbelt.New(&seatbelt.Options{Cache: s.Cache}),
		process.New(&process.Options{Allow: s.Allow, Stage: s.Stage, Cache: s.Cache}),
	}
}
