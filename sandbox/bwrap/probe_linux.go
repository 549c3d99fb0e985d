package bwrap

import (
	"context"

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/probe"
)

// Probe sets up a sandbox and tries what must not work in it.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	return probe.Run(ctx, b, b.opts.Stage, []string{"file", "process", "network", "namespaces", "mount", "privileges", "syscalls", "survivors"})
}
