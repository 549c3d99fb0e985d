// Package hostns runs a sandbox in the host's namespaces. It starts a stage and
// its guard in a [rundir.Dir]. The landlock backend adds access rules; the
// process backend does not.
package hostns

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures a [Sandbox].
type Options struct {
	Backend  string
	Stage    string // the default is the current executable
	UID      int    // user that runs the code if this program runs as root
	Dir      string
	Cache    string
	NoGroups bool
	// Restrict, if set, adds restrictions to the limits.
	Restrict func(*stage.Restrictions, *rundir.Dir)
	// Filter returns the seccomp program. If Filter is nil, no program is
	// installed.
	Filter func() ([]byte, error)
	// Enforced maps each limit and layer to the mechanism that enforces it.
	Enforced func(*launcher.Sandbox, *cgroup.Group, *sandbox.Spec) map[string]string
}

// Sandbox is a running stage, its directory and its guard. It implements
// [sandbox.Sandbox].
type Sandbox struct {
	*launcher.Sandbox
	enforced  map[string]string
	watched   chan struct{} // closed when the disk watch has stopped
	removeErr *error        // error of removing the directory
}

// State implements [sandbox.Sandbox].
func (s *Sandbox) State() sandbox.State { return sandbox.State{Enforced: maps.Clone(s.enforced)} }

// Close kills all processes in the sandbox and removes its directory.
func (s *Sandbox) Close() error {
	s.Sandbox.Close()
	<-s.watched
	return *s.removeErr
}

// Start creates the directory and starts a stage in it.
func Start(ctx context.Context, spec *sandbox.Spec, opts Options) (*Sandbox, error) {
	uid := 0
	if os.Geteuid() == 0 {
		uid = opts.UID
	}
	x, err := rundir.New(rundir.Options{Backend: opts.Backend, Parent: opts.Dir, Cache: opts.Cache, UID: uid}, spec)
	if err != nil {
		return nil, err
	}
	limits := prepare.Limits(spec)
	cfg := &launcher.Config{
		Backend: opts.Backend, Command: command(opts.Stage, uid), Setup: stage.Setup{Reap: true}, Filter: opts.Filter, HostPath: x.HostPath, Graceful: true,
		Restrictions: stage.Restrictions{
			Memory: limits.Memory, CPU: int64(limits.CPU.Seconds()), Socket: launcher.SocketSize(), NetShared: true,
			Work: x.HostPath(mountpoint.Work), Skip: "in", Threads: launcher.IdleThreads,
		},
	}
	if opts.Restrict != nil {
		opts.Restrict(&cfg.Restrictions, x)
	}
	var group *cgroup.Group
	if !opts.NoGroups {
		group = cfg.Group(limits, limits.Work+limits.Tmp) // files use the page cache; the stage watches other memory
	}
	cfg.Restrictions.Rlimits = rlimits(limits, uid, LimitsUser(group))
	var left error
	cfg.OnClose = func() {
		left = x.Close()
		if group != nil {
			group.Remove()
		}
	}
	inner, err := launcher.Start(ctx, spec, cfg)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Sandbox: inner, enforced: opts.Enforced(inner, group, spec), watched: make(chan struct{}), removeErr: &left}
	go func() {
		defer close(s.watched)
		x.Watch(limits, inner.Ended(), inner.Busy, func(why string) { inner.Stop(sandbox.FileSize, why) })
	}()
	return s, nil
}

// command returns the command that starts the guard. The guard then starts the
// stage.
func command(exe string, uid int) *exec.Cmd {
	if exe == "" {
		exe = "/proc/self/exe"
	}
	cmd := &exec.Cmd{
		Path: exe, Args: []string{stage.Name, stage.Guard}, Dir: "/",
		Env:         launcher.Environment(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return cmd
}

// LimitsUser reports whether the process limit applies to all processes of the
// user, because there is no control group. In that case, another sandbox of the
// same user can use up the limit.
func LimitsUser(g *cgroup.Group) bool {
	return g == nil || !slices.Contains(g.Controllers(), "pids")
}

// rlimits returns the resource limits of commands. If the process limit applies
// to the user, it is increased by the number of the user's existing processes.
func rlimits(l sandbox.Limits, uid int, countsUser bool) []stage.Rlimit {
	if !countsUser {
		return launcher.Rlimits(l, false)
	}
	if uid == 0 {
		uid = os.Geteuid()
	}
	l.Processes += countThreads(uid)
	return launcher.Rlimits(l, true)
}

// countThreads returns the number of threads owned by a user.
func countThreads(uid int) (n int) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if _, err := strconv.Atoi(e.Name()); err != nil {
			continue
		}
		status, err := os.ReadFile("/proc/" + e.Name() + "/status")
		if err != nil {
			continue
		}
		owner, count := -1, 0
		for line := range strings.Lines(string(status)) {
			name, rest, _ := strings.Cut(line, ":")
			f := strings.Fields(rest)
			switch {
			case len(f) == 0:
			case name == "Uid":
				owner, _ = strconv.Atoi(f[0])
			case name == "Threads":
				count, _ = strconv.Atoi(f[0])
			}
		}
		if owner == uid {
			n += count
		}
	}
	return n
}
