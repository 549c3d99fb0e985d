//go:build !unix

package process

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

// Start returns an error, because the system has no process groups.
func (b *Backend) Start(_ context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := b.check(spec); err != nil {
		return nil, err
	}
	return nil, b.unavailableError()
}

// Probe returns an error, because the system has no process groups.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, b.unavailableError() }

func (b *Backend) unavailableError() error {
	return &sandbox.UnavailableError{Backend: b.Name(), Missing: "process groups, which do not exist on " + runtime.GOOS, Fix: "use a container engine"}
}
