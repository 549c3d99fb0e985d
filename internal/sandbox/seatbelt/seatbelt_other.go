//go:build !darwin

package seatbelt

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

func unavailableError() error {
	return &sandbox.UnavailableError{Backend: "seatbelt", Missing: "Seatbelt (macOS only; this is " + runtime.GOOS + ")", Fix: "use native on Linux, or a container engine"}
}

// Probe returns an error, because Seatbelt requires macOS.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, unavailableError() }

// Start returns an error, because Seatbelt requires macOS.
func (b *Backend) Start(context.Context, *sandbox.Spec) (sandbox.Sandbox, error) {
	return nil, unavailableError()
}
