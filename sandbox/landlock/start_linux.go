package landlock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/box"
	"github.com/loadout-dev/loadout/sandbox/internal/cgroup"
	"github.com/loadout-dev/loadout/sandbox/internal/filter"
	"github.com/loadout-dev/loadout/sandbox/internal/layout"
	"github.com/loadout-dev/loadout/sandbox/internal/shared"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// Start prepares a sandbox.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	if spec.Network.Mode != sandbox.NoNetwork {
		return nil, &sandbox.UnsupportedError{Backend: b.Name(), What: fmt.Sprintf("a network (%s): rules by port let any host through", spec.Network.Mode), Fix: "use native, bwrap or container"}
	}
	if abi := stage.LandlockABI(); abi < layout.LandlockLeast {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("Landlock ABI %d, which bounds signals and abstract sockets; the kernel has %d", layout.LandlockLeast, abi),
			Fix: "use a kernel of 6.12 or newer with Landlock: lsm= on the kernel's command line must name it"}
	}
	program := filter.Owner
	if os.Geteuid() == 0 {
		program = filter.Shared // code is a user who owns nothing
	}
	s, err := shared.Start(ctx, spec, shared.Options{
		Backend: b.Name(), Stage: b.opts.Stage, UID: b.opts.UID, Dir: b.opts.Dir, Cache: b.opts.Cache, NoGroups: b.opts.NoGroups,
		Seal: func(seal *stage.Seal, x *box.Box) { seal.Landlock, seal.Seccomp = rules(x), true }, Filter: program,
		Enforced: enforced,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// rules let code see the programs of the host and its own files, and change its
// own.
func rules(x *box.Box) *stage.Landlock {
	l := &stage.Landlock{Least: layout.LandlockLeast, TCP: true, Files: layout.Devices()}
	l.Read = append(append(layout.Readable(), x.Dir), x.Read...)
	l.Write = append([]string{x.At(sandbox.WorkDir), x.At(sandbox.TmpDir)}, x.Write...)
	for i, p := range l.Read {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			l.Read[i] = real
		}
	}
	return l
}

// enforced tells each limit and layer with what enforces it.
func enforced(s *staged.Sandbox, g *cgroup.Group, _ *sandbox.Spec) map[string]string {
	processes := "RLIMIT_NPROC, which counts all of this user's"
	if os.Geteuid() == 0 {
		processes = "RLIMIT_NPROC, which counts all of the sandboxes'"
	}
	if !shared.CountsUser(g) {
		processes = ""
	}
	e := map[string]string{
		"filesystem": "Landlock ABI " + strconv.Itoa(s.Landlock), "processes_visible": "no /proc, Landlock's scope of signals", "syscalls": "seccomp",
		"privileges": "no_new_privs", "network": "seccomp: no sockets, Landlock", "kill": "guard process",
		"memory": "RLIMIT_DATA, watch every 50 ms", "processes": processes, "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "watch every 2 to 50 ms, not of what is removed but open", "inodes": "watch every 2 to 50 ms", "wall": "timer",
	}
	staged.Enforce(e, g)
	return e
}
