//go:build !linux

package bwrap

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

func unavailableError() error {
	return &sandbox.UnavailableError{Backend: "bwrap", Missing: "Linux namespaces, which do not exist on " + runtime.GOOS,
		Fix: "use a container engine, or run it on Linux"}
}

// Probe returns an error, because bubblewrap requires Linux.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, unavailableError() }

// Start returns an error, because bubblewrap requires Linux.
func (b *Backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, unavailableError()
}
