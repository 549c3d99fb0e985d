package landlock

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/hostns"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/layout"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/internal/sandbox/seccomp"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Start starts a sandbox confined by Landlock and seccomp.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := prepare.Check(spec); err != nil {
		return nil, err
	}
	if spec.Network.Host || len(spec.Network.Allow) > 0 {
		return nil, &sandbox.UnsupportedError{Backend: b.Name(), What: "a network: rules by port allow any host", Fix: "use native, bwrap or container"}
	}
	if abi := stage.LandlockABI(); abi < layout.LandlockMinABI {
		return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("Landlock ABI %d, which restricts signals and abstract sockets; the kernel has %d", layout.LandlockMinABI, abi),
			Fix: "use a kernel of 6.12 or newer with Landlock enabled: lsm= on the kernel's command line must contain it"}
	}
	program := seccomp.HostUser
	if os.Geteuid() == 0 {
		program = seccomp.HostNamespaces // the user that runs the code owns no files
	}
	s, err := hostns.Start(ctx, spec, hostns.Options{
		Backend: b.Name(), Stage: b.opts.Stage, UID: b.opts.UID, Dir: b.opts.Dir, Cache: b.opts.Cache, NoGroups: b.opts.NoGroups,
		Restrict: func(seal *stage.Restrictions, x *rundir.Dir) { seal.Landlock, seal.Seccomp = landlockRules(x), true }, Filter: program,
		Enforced: enforcedLayers,
	})
	if err != nil {
		return nil, err
	}
	return s, nil
}

// landlockRules returns Landlock rules that let code read the host's programs, and read
// and write its own files.
func landlockRules(x *rundir.Dir) *stage.Landlock {
	l := &stage.Landlock{Least: layout.LandlockMinABI, TCP: true, Files: layout.WriteDevices()}
	l.Read = append(append(layout.Readable(), layout.ReadDevice, x.Root), x.Read...)
	l.Write = append([]string{x.HostPath(mountpoint.Work), x.HostPath(mountpoint.Tmp)}, x.Write...)
	for i, p := range l.Read {
		if real, err := filepath.EvalSymlinks(p); err == nil {
			l.Read[i] = real
		}
	}
	return l
}

// enforcedLayers returns the mechanism that enforces each limit and layer.
func enforcedLayers(s *launcher.Sandbox, g *cgroup.Group, _ *sandbox.Spec) map[string]string {
	processes := "RLIMIT_NPROC, which counts all of this user's"
	if os.Geteuid() == 0 {
		processes = "RLIMIT_NPROC, which counts all of the sandboxes'"
	}
	if !hostns.LimitsUser(g) {
		processes = ""
	}
	e := map[string]string{
		"filesystem": "Landlock ABI " + strconv.Itoa(s.Landlock), "processes_visible": "no /proc, Landlock's scope of signals", "syscalls": "seccomp",
		"privileges": "no_new_privs", "network": "seccomp: no sockets, Landlock", "kill": "guard process",
		"memory": launcher.MemoryWatch, "processes": processes, "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "check every 2 to 50 ms, without open files that were removed", "inodes": "check every 2 to 50 ms", "wall": "timer",
	}
	launcher.AddEnforced(e, g)
	return e
}
