package process

import (
	"context"

	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/hostns"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/sandbox"
)

// Start creates a directory and starts a stage. If the code was not approved,
// the error is a [*NotAllowedError].
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := b.check(spec); err != nil {
		return nil, err
	}
	s, err := hostns.Start(ctx, spec, hostns.Options{
		Backend: b.Name(), Stage: b.opts.Stage, UID: b.opts.UID, Dir: b.opts.Dir, Cache: b.opts.Cache, NoGroups: b.opts.NoGroups, Enforced: enforcedLayers,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// enforcedLayers returns the mechanism that enforces each limit and layer.
// Memory is not among them, because code could kill the process that watches
// it.
func enforcedLayers(_ *launcher.Sandbox, g *cgroup.Group, _ *sandbox.Spec) map[string]string {
	processes := "RLIMIT_NPROC, which counts all of this user's"
	if !hostns.LimitsUser(g) {
		processes = ""
	}
	e := map[string]string{
		"filesystem": "", "processes_visible": "", "syscalls": "", "network": "", "privileges": "no_new_privs", "kill": "",
		"memory": "", "processes": processes, "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "check every 2 to 50 ms, without open files that were removed", "inodes": "check every 2 to 50 ms", "wall": "timer",
	}
	launcher.AddEnforced(e, g)
	return e
}
