package auto

import (
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/bwrap"
	"github.com/loadout-dev/loadout/sandbox/container"
	"github.com/loadout-dev/loadout/sandbox/landlock"
	"github.com/loadout-dev/loadout/sandbox/native"
	"github.com/loadout-dev/loadout/sandbox/process"
	"github.com/loadout-dev/loadout/sandbox/seatbelt"
)

// Settings are what the back ends are told besides a spec.
type Settings struct {
	// Stage is an executable that links internal/stage; default is this one.
	Stage string
	// Cache is the directory for verified copies of skills; default is one in
	// the user's cache directory.
	Cache string
	// Image is what the container back end makes containers of.
	Image string
	// Allow is the opt-in to the process back end for a digest; nil allows none.
	Allow func(digest string) bool
}

// Candidates are the back ends, in order of preference: native, bwrap and
// container isolate; landlock and seatbelt confine; process does neither. Each
// is there on every system, and says by its probe where it cannot be used.
func Candidates(s *Settings) []sandbox.Backend {
	if s == nil {
		s = &Settings{}
	}
	return []sandbox.Backend{
		native.New(&native.Options{Stage: s.Stage}),
		bwrap.New(&bwrap.Options{Stage: s.Stage, Cache: s.Cache}),
		container.New(&container.Options{Image: s.Image, Cache: s.Cache}),
		landlock.New(&landlock.Options{Stage: s.Stage, Cache: s.Cache}),
		seatbelt.New(&seatbelt.Options{Cache: s.Cache}),
		process.New(&process.Options{Allow: s.Allow, Stage: s.Stage, Cache: s.Cache}),
	}
}
