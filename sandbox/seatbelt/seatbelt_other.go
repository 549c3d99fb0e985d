//go:build !darwin

package seatbelt

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

func unavailable() error {
	return &sandbox.UnavailableError{Backend: "seatbelt", Missing: "the Seatbelt of macOS, which " + runtime.GOOS + " has none of", Fix: "use native on Linux, or a container engine"}
}

// Probe says that there is nothing of the kind here.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, unavailable() }

// Start says that there is nothing of the kind here.
func (b *Backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, unavailable()
}
