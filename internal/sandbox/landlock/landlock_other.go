//go:build !linux

package landlock

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

func unavailableError() error {
	return &sandbox.UnavailableError{Backend: "landlock", Missing: "Landlock (Linux only; this is " + runtime.GOOS + ")",
		Fix: "use a container engine, or run it on Linux"}
}

// Probe returns an error, because Landlock requires Linux.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, unavailableError() }

// Start returns an error, because Landlock requires Linux.
func (b *Backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, unavailableError()
}
