package seatbelt

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"

	"github.com/loadout-dev/loadout/internal/sandbox/execute"
	"github.com/loadout-dev/loadout/sandbox"
)

// program is the fixed path of sandbox-exec. PATH is not searched, because it
// may contain another program of that name.
const program = "/usr/bin/sandbox-exec"

// Start starts a sandbox confined by sandbox-exec.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if _, err := os.Stat(program); err != nil {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "the program sandbox-exec", Err: err, Fix: "use a container engine"}
	}
	return b.start(spec, program)
}

// Probe runs a command in a sandbox and reports what is enforced.
func (b *Backend) Probe(ctx context.Context) (*sandbox.Report, error) {
	res, err := execute.Run(ctx, b, &sandbox.Spec{}, &sandbox.Cmd{Args: []string{"true"}}, nil)
	if err != nil {
		return nil, err
	}
	if res.Reason != sandbox.OK {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "cannot run a program", Err: fmt.Errorf("run test program: %s %s %.200s", res.Reason, res.Detail, res.Stderr)}
	}
	r := &sandbox.Report{Backend: b.Name(), Tier: b.Tier()}
	for _, name := range slices.Sorted(maps.Keys(res.Enforced)) {
		r.Layers = append(r.Layers, sandbox.Layer{Name: name, Enforced: res.Enforced[name] != "", By: res.Enforced[name]})
	}
	return r, nil
}
