//go:build !unix

package process

import (
	"context"
	"runtime"

	"github.com/loadout-dev/loadout/sandbox"
)

// Start says that there is nothing of the kind here.
func (b *Backend) Start(_ context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := b.check(spec); err != nil {
		return nil, err
	}
	return nil, b.unavailable()
}

// Probe says that there is nothing of the kind here.
func (b *Backend) Probe(context.Context) (*sandbox.Report, error) { return nil, b.unavailable() }

func (b *Backend) unavailable() error {
	return &sandbox.UnavailableError{Backend: b.Name(), Missing: "process groups, which " + runtime.GOOS + " has none of", Fix: "use a container engine"}
}
