//go:build !linux

package landlock

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

func unavailable() error {
	return &sandbox.UnavailableError{Backend: "landlock", Missing: "the Landlock of Linux, which " + runtime.GOOS + " has none of",
		Fix: "use a container engine, or run it on Linux"}
}

// Probe says that there is nothing of the kind here.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, unavailable() }

// Start says that there is nothing of the kind here.
func (b *Backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, unavailable()
}
