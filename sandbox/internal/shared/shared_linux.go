// Package shared is a sandbox in the host's own namespaces: our stage under a
// guard, in real directories of the host. landlock adds access rules to it,
// process does not.
package shared

import (
	"context"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/box"
	"github.com/loadout-dev/loadout/sandbox/internal/cgroup"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// Options say what the sandbox is to have.
type Options struct {
	Backend  string
	Stage    string // default is this executable
	UID      int    // whom code is where this program is root
	Dir      string
	Cache    string
	NoGroups bool
	// Seal adds what is given up besides limits; nil adds nothing.
	Seal func(*stage.Seal, *box.Box)
	// Filter is the seccomp program; nil is none.
	Filter func() ([]byte, error)
	// Enforced tells what the sandbox enforces.
	Enforced func(*staged.Sandbox, *cgroup.Group, *sandbox.Spec) map[string]string
}

// Sandbox is a sandbox in the host's namespaces.
type Sandbox struct {
	*staged.Sandbox
	enforced map[string]string
	watched  chan struct{} // closed when nobody looks at its disk any more
	left     *error        // why its directory could not be removed
}

// State says what is enforced in this sandbox.
func (s *Sandbox) State() sandbox.State { return sandbox.State{Enforced: maps.Clone(s.enforced)} }

// Close ends everything in the sandbox and removes its directory.
func (s *Sandbox) Close() error {
	s.Sandbox.Close()
	<-s.watched
	return *s.left
}

// Start prepares a sandbox.
func Start(ctx context.Context, spec *sandbox.Spec, opts Options) (*Sandbox, error) {
	uid := 0
	if os.Geteuid() == 0 {
		uid = opts.UID
	}
	x, err := box.New(box.Options{Backend: opts.Backend, Dir: opts.Dir, Cache: opts.Cache, UID: uid}, spec)
	if err != nil {
		return nil, err
	}
	limits := spec.Limits.WithDefaults()
	cfg := &staged.Config{
		Backend: opts.Backend, Command: command(opts.Stage, uid), Setup: stage.Setup{Reap: true}, Filter: opts.Filter, At: x.At, Graceful: true,
		Seal: stage.Seal{
			Memory: limits.Memory, CPU: int64(limits.CPU.Seconds()),
			Work: x.At(sandbox.WorkDir), Skip: "in", Threads: staged.IdleThreads,
		},
	}
	if opts.Seal != nil {
		opts.Seal(&cfg.Seal, x)
	}
	var group *cgroup.Group
	if !opts.NoGroups {
		group = cfg.Group(limits, limits.Work+limits.Tmp) // which are in the page cache; what is held otherwise is watched
	}
	cfg.Seal.Rlimits = rlimits(limits, uid, CountsUser(group))
	var left error
	cfg.Closed = func() {
		left = x.Close()
		if group != nil {
			group.Remove()
		}
	}
	inner, err := staged.Start(ctx, spec, cfg)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{Sandbox: inner, enforced: opts.Enforced(inner, group, spec), watched: make(chan struct{}), left: &left}
	go func() {
		defer close(s.watched)
		x.Watch(limits, inner.Ended(), inner.Busy, func(why string) { inner.Stop(sandbox.FileSize, why) })
	}()
	return s, nil
}

// command starts the guard, which starts the stage.
func command(exe string, uid int) *exec.Cmd {
	if exe == "" {
		exe = "/proc/self/exe"
	}
	cmd := &exec.Cmd{
		Path: exe, Args: []string{stage.Name, stage.Guard}, Dir: "/",
		Env:         staged.Environment(),
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}
	if uid != 0 {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	return cmd
}

// CountsUser reports whether processes are counted by user, as no control group
// counts those of the sandbox: then another sandbox can use up what is left.
func CountsUser(g *cgroup.Group) bool {
	return g == nil || !slices.Contains(g.Controllers(), "pids")
}

// rlimits are the limits of commands. Where processes are counted by user, those
// that the user has now come on top.
func rlimits(l sandbox.Limits, uid int, countsUser bool) []stage.Rlimit {
	if !countsUser {
		return staged.Rlimits(l, false)
	}
	if uid == 0 {
		uid = os.Geteuid()
	}
	l.Processes += threads(uid)
	return staged.Rlimits(l, true)
}

// threads counts the threads of a user.
func threads(uid int) (n int) {
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
