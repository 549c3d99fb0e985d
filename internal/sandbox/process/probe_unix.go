//go:build unix

package process

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// Probe runs a command in a sandbox and reports what is enforced.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	mine := New(&b.opts)
	mine.opts.Allow = func(string) bool { return true } // only the probe's command runs in it
	spec := &sandbox.Spec{Digest: "probe", Network: sandbox.Network{Host: true}}
	res, err := execute.Run(ctx, mine, spec, &sandbox.Cmd{Args: []string{"true"}}, nil)
	if err != nil {
		return nil, err
	}
	if res.Reason != sandbox.OK {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "cannot run a program", Err: fmt.Errorf("run test program: %s %s", res.Reason, res.Detail)}
	}
	r := &sandbox.Report{Backend: b.Name(), Tier: b.Tier()}
	for _, name := range slices.Sorted(maps.Keys(res.Enforced)) {
		r.Layers = append(r.Layers, sandbox.Layer{Name: name, Enforced: res.Enforced[name] != "", By: res.Enforced[name]})
	}
	return r, nil
}
