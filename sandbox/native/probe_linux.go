package native

import (
	"context"

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/probe"
)

// Probe sets up a sandbox and tries from inside what must not work there. Each
// layer is needed: without one there is no sandbox.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	return probe.Run(ctx, b, b.opts.Stage, []string{"file", "process", "network", "namespaces", "mount", "privileges", "syscalls", "survivors"})
}
