package bwrap

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/bundle"
	"github.com/loadout-dev/loadout/internal/sandbox/cgroup"
	"github.com/loadout-dev/loadout/internal/sandbox/launcher"
	"github.com/loadout-dev/loadout/internal/sandbox/layout"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/network"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/seccomp"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

type instance struct {
	*launcher.Sandbox
	enforced map[string]string
	proxy    *network.Proxy
}

// State implements [sandbox.Sandbox].
func (b *instance) State() sandbox.State {
	return sandbox.State{Enforced: maps.Clone(b.enforced), Denied: b.proxy.Denied(), Tier: launcher.Tier(sandbox.Isolated, b.enforced)}
}

// Start starts a sandbox in namespaces created by bubblewrap.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := prepare.Check(spec); err != nil {
		return nil, err
	}
	prog, err := b.findProgram(ctx)
	if err != nil {
		return nil, err
	}
	var held bundles
	limits := prepare.Limits(spec)
	setup := layout.View(spec, limits)
	exe, err := b.addCopies(spec, &setup, &held)
	if err != nil {
		held.close()
		return nil, err
	}
	proxy, err := network.New(spec)
	if err != nil {
		held.close()
		return nil, err
	}
	setup.Files = append(setup.Files, proxy.Files()...)
	cfg := &launcher.Config{
		Backend: b.Name(), Trees: writableTrees(spec), Filter: seccomp.IsolatedFor(spec),
		Graceful: true, // killing bubblewrap does not kill its child; see arguments
		Restrictions: stage.Restrictions{
			Rlimits: launcher.Rlimits(limits, true), Seccomp: true, Landlock: landlockRules(&setup), Memory: limits.Memory, CPU: int64(limits.CPU.Seconds()),
			Inodes: int64(limits.Inodes), Counted: []string{mountpoint.Work, mountpoint.Tmp, "/dev/shm"}, // bubblewrap limits only sizes
			Socket: launcher.SocketSize(), NetShared: spec.Network.Host, GrowingTCP: true,
			Work: mountpoint.Work, Skip: "in", Threads: launcher.IdleThreads,
		},
		Serve: func(l net.Listener) { proxy.Serve(l) },
	}
	if proxy != nil {
		cfg.Setup.Listen = network.Port
	}
	var group *cgroup.Group
	var child child
	cfg.OnClose = func() {
		child.kill()
		proxy.Close()
		held.close()
		if group != nil {
			group.Remove()
		}
	}
	info, err := b.command(cfg, prog, &setup, spec, exe)
	if err != nil {
		cfg.OnClose()
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	defer info.Close()
	if !b.opts.NoGroups {
		group = cfg.Group(limits, limits.Work+limits.Tmp+limits.Shm)
	}
	// Only the child of bubblewrap is in the group.
	cfg.CloneInto, cfg.Attach = nil, func(int) error { return child.attach(group, info) }
	s, err := launcher.Start(ctx, proxy.Environment(spec), cfg)
	if err != nil {
		return nil, explainError(err)
	}
	return &instance{Sandbox: s, enforced: enforcedLayers(s, group, spec), proxy: proxy}, nil
}

// bundles are the cached copies in use by a sandbox.
type bundles []*bundle.Bundle

func (h bundles) close() {
	for _, b := range h {
		b.Close()
	}
}

func (b *Backend) isRoot() bool { return os.Geteuid() == 0 }

// addCopies adds verified copies of the read-only trees to the view. It returns
// the path of a stage that the sandbox user can execute.
func (b *Backend) addCopies(spec *sandbox.Spec, setup *stage.Setup, held *bundles) (string, error) {
	cache := b.opts.Cache
	if cache == "" {
		var err error
		if cache, err = bundle.Cache(); err != nil {
			return "", &sandbox.UnavailableError{Backend: b.Name(), Missing: "a cache directory", Err: err, Fix: "set HOME or XDG_CACHE_HOME"}
		}
	}
	for i := range spec.Trees {
		t := &spec.Trees[i]
		if prepare.IsWritable(t.Path) {
			continue
		}
		c, err := bundle.Open(cache, t)
		if err != nil {
			return "", err
		}
		*held = append(*held, c)
		setup.Binds = append(setup.Binds, stage.Bind{Host: c.Dir, Path: t.Path})
	}
	for _, m := range spec.Mounts {
		if err := bundle.Searchable(m.Host, b.opts.UID); b.isRoot() && err != nil && !errors.Is(err, fs.ErrNotExist) { // bubblewrap itself reports missing paths
			return "", &sandbox.UnsupportedError{Backend: b.Name(), What: fmt.Sprintf("%s for user %d, who runs bubblewrap: %v", m.Host, b.opts.UID, err),
				Fix: "let others search its parent directories, use native, or run this program as another user"}
		}
	}
	exe, err := b.stageExecutable(cache, held)
	if err != nil {
		return "", &sandbox.UnavailableError{Backend: b.Name(), Missing: "an executable stage", Err: err,
			Fix: "install this program where every user can reach it"}
	}
	if b.isRoot() {
		if err := bundle.Reachable(exe, b.opts.UID); err != nil {
			return "", &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("a cache directory that user %d can reach, because bubblewrap must not run as root", b.opts.UID), Err: err,
				Fix: "choose one that others can search, or run this program as another user"}
		}
	}
	return exe, nil
}

// stageExecutable returns the executable of the stage: the current executable, or a copy
// if it was replaced or is not accessible to another user.
func (b *Backend) stageExecutable(cache string, held *bundles) (string, error) {
	exe := b.opts.Stage
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return "", err
		}
		now, err := os.Stat(exe)
		self, err2 := os.Stat("/proc/self/exe")
		if err != nil || err2 != nil || !os.SameFile(now, self) {
			exe = "/proc/self/exe" // the file was replaced
		}
	}
	if !b.isRoot() && exe != "/proc/self/exe" {
		return exe, nil
	}
	path, c, err := bundle.Program(cache, exe)
	if err != nil {
		return "", err
	}
	*held = append(*held, c)
	return path, nil
}

// writableTrees returns the trees that are streamed to the stage.
func writableTrees(spec *sandbox.Spec) []sandbox.Tree {
	var out []sandbox.Tree
	for _, t := range spec.Trees {
		if prepare.IsWritable(t.Path) {
			out = append(out, t)
		}
	}
	return out
}

// landlockRules returns the Landlock rules, which restrict access in addition to the
// mounts.
func landlockRules(s *stage.Setup) *stage.Landlock {
	if stage.LandlockABI() == 0 {
		return nil
	}
	l := layout.Rules(s)
	l.Least = 1
	return l
}

// command sets the bubblewrap command in the configuration. info is the status
// output of bubblewrap.
func (b *Backend) command(cfg *launcher.Config, p *program, s *stage.Setup, spec *sandbox.Spec, exe string) (info *os.File, err error) {
	args, texts := arguments(p, s, spec, exe)
	cmd := &exec.Cmd{Path: p.path, Args: append([]string{"bwrap"}, args...), Env: []string{}, Dir: "/", SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if b.isRoot() {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(b.opts.UID), Gid: uint32(b.opts.UID)}
	}
	defer func() {
		if err != nil {
			for _, f := range cmd.ExtraFiles {
				f.Close()
			}
		}
	}()
	for _, text := range texts {
		f, err := textFile(text)
		if err != nil {
			return nil, err
		}
		cmd.ExtraFiles = append(cmd.ExtraFiles, f)
	}
	info, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, w)
	// bubblewrap also gets a read end. Otherwise it would fail to write the
	// status after this program was killed, and its child would wait forever.
	fd, err := unix.FcntlInt(info.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(int(info.Fd()), true) // Fd made the file blocking
	}
	if err != nil {
		info.Close()
		return nil, err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "reader"))
	cfg.Command = cmd
	return info, nil
}

// child is the sandbox process that bubblewrap starts and that becomes the
// stage.
type child struct {
	mu sync.Mutex
	fd int // pidfd; guarded by mu; 0 until known
}

// attach adds the child to the control group, if there is one. The status
// output of bubblewrap contains its PID. The child starts no processes before
// it is restricted, which happens later.
func (c *child) attach(g *cgroup.Group, info io.Reader) error {
	var body struct {
		Child int `json:"child-pid"`
	}
	err := json.NewDecoder(info).Decode(&body)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // bubblewrap has exited; the reason is reported elsewhere
	}
	if err == nil && body.Child <= 0 {
		err = errors.New("bubblewrap did not report the PID of its child")
	}
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	if fd, err := unix.PidfdOpen(body.Child, 0); err == nil { // since Linux 5.3
		c.mu.Lock()
		c.fd = fd
		c.mu.Unlock()
	}
	if g == nil {
		return nil
	}
	if err = g.Attach(body.Child); errors.Is(err, syscall.ESRCH) {
		return nil // the child has exited
	}
	return err
}

// kill kills the child if it is still running after bubblewrap has exited.
func (c *child) kill() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd > 0 {
		unix.PidfdSendSignal(c.fd, unix.SIGKILL, nil, 0) // no effect if the child has exited
		unix.Close(c.fd)
		c.fd = 0
	}
}

// explainError adds instructions to an error if bubblewrap is not allowed to create
// namespaces.
func explainError(err error) error {
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if ok && e.Fix == "" && e.Err != nil && (strings.Contains(e.Err.Error(), "namespace") || strings.Contains(e.Err.Error(), "ermission")) {
		e.Fix = "allow bwrap to use user namespaces: kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0; on Ubuntu an AppArmor profile for bwrap with userns"
	}
	return err
}

// enforcedLayers returns the mechanism that enforces each limit and layer.
func enforcedLayers(s *launcher.Sandbox, g *cgroup.Group, spec *sandbox.Spec) map[string]string {
	e := map[string]string{
		"filesystem":        "mount namespace",
		"processes_visible": "process namespace", "syscalls": "seccomp", "privileges": "user namespace, no capabilities, no_new_privs",
		"memory": launcher.MemoryWatch, "processes": "RLIMIT_NPROC", "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "sized tmpfs", "inodes": "check every 2 to 50 ms", "wall": "timer",
		"network": "network namespace",
	}
	if s.Landlock > 0 {
		e["filesystem"] += ", Landlock ABI " + strconv.Itoa(s.Landlock)
	} else {
		e["memory"] = "" // code can map /dev/zero
	}
	switch {
	case len(spec.Network.Allow) > 0:
		e["network"] = "network namespace, allowlist proxy"
	case spec.Network.Host:
		e["network"], e["memory"] = "", "" // connections can have large buffers
	}
	launcher.AddEnforced(e, g)
	return e
}
