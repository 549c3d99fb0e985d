package native

import (
	"context"

	"github.com/loadout-dev/loadout/internal/sandbox/probe"
	"github.com/loadout-dev/loadout/sandbox"
)

// Probe starts a sandbox and tests its isolation from inside. It returns an
// error if any layer is missing.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	return probe.Run(ctx, b, b.opts.Stage, []string{"file", "process", "network", "namespaces", "mount", "privileges", "syscalls", "survivors"})
}

// ProbeKey returns a key that changes if the result of [Backend.Probe] may change;
// see [probe.Key].
func (b *Backend) ProbeKey() (string, error) {
	opts := b.opts
	opts.Spare = false // the isolation is the same
	return probe.Key(b, []string{opts.Stage}, opts)
}
