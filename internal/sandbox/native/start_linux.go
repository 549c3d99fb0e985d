package native

import (
	"context"
	"errors"
	"maps"
	"net"
	"os"
	"os/exec"
	"strconv"
	"syscall"

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

// sandboxID is the user and group ID of processes in the sandbox.
const sandboxID = 1000

type instance struct {
	*launcher.Sandbox
	enforced map[string]string
	proxy    *network.Proxy
	changes  *changes
}

// State implements [sandbox.Sandbox].
func (b *instance) State() sandbox.State {
	return sandbox.State{Enforced: maps.Clone(b.enforced), Denied: b.proxy.Denied(), Tier: launcher.Tier(sandbox.Isolated, b.enforced)}
}

// Start starts a sandbox in new namespaces, if possible those of a spare.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := prepare.Check(spec); err != nil {
		return nil, err
	}
	if !spec.Network.Host {
		if sp := b.spares.acquire(); sp != nil {
			box, err := b.start(ctx, spec, sp)
			if _, failed := errors.AsType[*sandbox.UnavailableError](err); !failed || ctx.Err() != nil {
				return box, err
			}
		}
	}
	return b.start(ctx, spec, nil)
}

// start starts a sandbox in a spare or, if sp is nil, in a new stage. It closes
// the spare if it fails.
func (b *Backend) start(ctx context.Context, spec *sandbox.Spec, sp *spare) (sandbox.Sandbox, error) {
	discard := func() {
		if sp != nil {
			sp.end()
		}
	}
	limits := prepare.Limits(spec)
	proxy, err := network.New(spec)
	if err != nil {
		discard()
		return nil, err
	}
	setup := newView(spec, limits)
	setup.UID = sandboxID
	changes := b.overlay(spec, &setup)
	if proxy != nil {
		setup.Listen = network.Port
		setup.Files = append(setup.Files, proxy.Files()...)
	}
	cfg := &launcher.Config{
		Backend: b.Name(), Setup: setup, Trees: spec.Trees, Filter: seccomp.IsolatedFor(spec),
		Restrictions: stage.Restrictions{
			ReadOnly: layout.ReadOnly(&setup), Rlimits: launcher.Rlimits(limits, true), Caps: true, Seccomp: true,
			Landlock: layout.Rules(&setup), Memory: limits.Memory, CPU: int64(limits.CPU.Seconds()),
			Socket: launcher.SocketSize(), NetShared: spec.Network.Host,
			Work: mountpoint.Work, Skip: "in", Threads: launcher.IdleThreads,
		},
		Serve: func(l net.Listener) { proxy.Serve(l) },
	}
	group, err := b.setStage(limits, cfg, spec, sp)
	if err != nil {
		discard()
		proxy.Close()
		changes.close()
		return nil, err
	}
	started := false
	cfg.OnClose = func() {
		proxy.Close()
		changes.close()
		if group != nil {
			group.Remove()
		}
		if started && b.opts.Spare {
			b.spares.replace(b.launchSpare)
		}
	}
	s, err := launcher.Start(ctx, proxy.Environment(spec), cfg)
	if err != nil {
		return nil, explainError(err)
	}
	started = true
	changes.setError(s.OverlayError)
	return &instance{Sandbox: s, enforced: enforcedLayers(s, group, spec), proxy: proxy, changes: changes}, nil
}

// explainError adds the missing requirement and a fix to an error if the kernel
// refuses to create namespaces.
func explainError(err error) error {
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok {
		return err
	}
	switch {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EUSERS):
		e.Missing, e.Fix = "more user namespaces", "raise the limit: sysctl -w user.max_user_namespaces=10000"
	case errors.Is(e.Err, syscall.EPERM) && e.Fix == "", errors.Is(e.Err, syscall.EINVAL) && e.Fix == "", errors.Is(e.Err, syscall.ENOSYS) && e.Fix == "":
		e.Missing = "permission to create user namespaces"
		e.Fix = "allow them: sysctl -w kernel.unprivileged_userns_clone=1 on Debian, an AppArmor profile with userns on Ubuntu, " +
			"and in a container --security-opt seccomp=unconfined"
	}
	return e
}

// setStage adds the stage of a spare to the configuration or, if sp is nil, the
// command of a new stage. It also adds control groups if they are available:
// those of the spare with new limits, or new ones.
func (b *Backend) setStage(l sandbox.Limits, cfg *launcher.Config, spec *sandbox.Spec, sp *spare) (*cgroup.Group, error) {
	files := l.Work + l.Tmp + l.Shm
	for i := range spec.Trees { // trees are in memory too
		size, _ := launcher.TreeSize(&spec.Trees[i])
		files += size
	}
	if sp != nil {
		cfg.Stage = sp.stage
	} else {
		cfg.Command = b.command(spec)
	}
	if sp != nil && sp.group != nil {
		if err := cfg.Regroup(sp.group, l, files); err != nil {
			return nil, &sandbox.UnavailableError{Backend: b.Name(), Missing: "cannot limit the spare process", Err: err}
		}
		return sp.group, nil
	}
	if b.opts.NoGroups {
		return nil, nil
	}
	return cfg.Group(l, files), nil
}

// command returns the command that starts the stage in new namespaces.
func (b *Backend) command(spec *sandbox.Spec) *exec.Cmd {
	exe := b.opts.Stage
	if exe == "" {
		exe = "/proc/self/exe"
	}
	uid, gid := os.Geteuid(), os.Getegid()
	root := uid == 0
	if root {
		uid, gid = b.opts.UID, b.opts.UID
	}
	flags := uintptr(syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWPID | syscall.CLONE_NEWIPC | syscall.CLONE_NEWUTS | syscall.CLONE_NEWCGROUP)
	if !spec.Network.Host {
		flags |= syscall.CLONE_NEWNET
	}
	return &exec.Cmd{
		Path: exe, Args: []string{stage.Name}, Dir: "/",
		Env: launcher.Environment(),
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: flags, Setsid: true,
			UidMappings:                []syscall.SysProcIDMap{{ContainerID: sandboxID, HostID: uid, Size: 1}},
			GidMappings:                []syscall.SysProcIDMap{{ContainerID: sandboxID, HostID: gid, Size: 1}},
			GidMappingsEnableSetgroups: root,
			AmbientCaps:                capabilities,
		},
	}
}

// capabilities lists the capabilities that the stage needs in its own
// namespaces until it is restricted: DAC_OVERRIDE, KILL, SETGID, SETUID,
// SETPCAP, NET_ADMIN, SYS_PTRACE, SYS_ADMIN.
var capabilities = []uintptr{1, 5, 6, 7, 8, 12, 19, 21}

// enforcedLayers returns the mechanism that enforces each limit and layer.
func enforcedLayers(s *launcher.Sandbox, g *cgroup.Group, spec *sandbox.Spec) map[string]string {
	e := map[string]string{
		"filesystem":        "mount namespace, Landlock ABI " + strconv.Itoa(s.Landlock),
		"processes_visible": "process namespace", "syscalls": "seccomp", "privileges": "user namespace, no capabilities, no_new_privs",
		"memory": launcher.MemoryWatch, "processes": "RLIMIT_NPROC", "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "sized tmpfs", "inodes": "sized tmpfs", "wall": "timer",
		"network": "network namespace",
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
