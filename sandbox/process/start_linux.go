package process

import (
	"context"

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/cgroup"
	"github.com/loadout-dev/loadout/sandbox/internal/shared"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// Start prepares a directory and a stage. The error is a [*NotAllowedError]
// where nobody has agreed.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := b.check(spec); err != nil {
		return nil, err
	}
	s, err := shared.Start(ctx, spec, shared.Options{
		Backend: b.Name(), Stage: b.opts.Stage, UID: b.opts.UID, Dir: b.opts.Dir, Cache: b.opts.Cache, NoGroups: b.opts.NoGroups, Enforced: enforced,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// enforced tells each limit and layer with what enforces it. Code can end what
// watches it, as nothing keeps it from that.
func enforced(_ *staged.Sandbox, g *cgroup.Group, _ *sandbox.Spec) map[string]string {
	processes := "RLIMIT_NPROC, which counts all of this user's"
	if !shared.CountsUser(g) {
		processes = ""
	}
	e := map[string]string{
		"filesystem": "", "processes_visible": "", "syscalls": "", "network": "", "privileges": "no_new_privs", "kill": "",
		"memory": "RLIMIT_DATA, watch every 50 ms", "processes": processes, "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "watch every 2 to 50 ms, not of what is removed but open", "inodes": "watch every 2 to 50 ms", "wall": "timer",
	}
	staged.Enforce(e, g)
	return e
}
