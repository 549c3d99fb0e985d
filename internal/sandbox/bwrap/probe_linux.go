package bwrap

import (
	"context"
	"os/exec"

	"github.com/loadout-dev/loadout/internal/sandbox/probe"
	"github.com/loadout-dev/loadout/sandbox"
)

// Probe starts a sandbox and tests its isolation from inside.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	return probe.Run(ctx, b, b.opts.Stage, []string{"file", "process", "network", "namespaces", "mount", "privileges", "syscalls", "survivors"})
}

// ProbeKey returns a key that changes if the result of [Backend.Probe] may change;
// see [probe.Key].
func (b *Backend) ProbeKey() (string, error) {
	path, err := exec.LookPath(b.opts.Program)
	if err != nil {
		return "", err
	}
	return probe.Key(b, []string{b.opts.Stage, path}, b.opts)
}
