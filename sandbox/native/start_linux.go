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

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/cgroup"
	"github.com/loadout-dev/loadout/sandbox/internal/filter"
	"github.com/loadout-dev/loadout/sandbox/internal/layout"
	"github.com/loadout-dev/loadout/sandbox/internal/network"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

// Inside is the user and group that code is in its sandbox.
const inside = 1000

type box struct {
	*staged.Sandbox
	enforced map[string]string
	proxy    *network.Proxy
}

// State says what is enforced in this sandbox.
func (b *box) State() sandbox.State {
	return sandbox.State{Enforced: maps.Clone(b.enforced), Denied: b.proxy.Denied()}
}

// Start prepares a sandbox.
func (b *Backend) Start(ctx context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	if err := spec.Check(); err != nil {
		return nil, err
	}
	limits := spec.Limits.WithDefaults()
	proxy, err := network.New(spec)
	if err != nil {
		return nil, err
	}
	setup := view(spec, limits)
	setup.UID = inside
	if proxy != nil {
		setup.Listen = network.Port
		setup.Files = append(setup.Files, proxy.Files()...)
	}
	cfg := &staged.Config{
		Backend: b.Name(), Command: b.command(spec), Setup: setup, Trees: spec.Trees, Filter: filter.For(spec),
		Seal: stage.Seal{
			ReadOnly: layout.ReadOnly(&setup), Rlimits: staged.Rlimits(limits, true), Caps: true, Seccomp: true,
			Landlock: layout.Rules(&setup), Memory: limits.Memory, CPU: int64(limits.CPU.Seconds()),
			Work: sandbox.WorkDir, Skip: "in", Threads: staged.IdleThreads,
		},
		Serve: func(l net.Listener) { proxy.Serve(l) },
	}
	group := b.group(limits, cfg, spec)
	cfg.Closed = func() {
		proxy.Close()
		if group != nil {
			group.Remove()
		}
	}
	s, err := staged.Start(ctx, proxy.Environment(spec), cfg)
	if err != nil {
		return nil, explain(err)
	}
	return &box{Sandbox: s, enforced: enforced(s, group, spec), proxy: proxy}, nil
}

// explain names what is missing where the kernel made no namespaces.
func explain(err error) error {
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if !ok {
		return err
	}
	switch {
	case errors.Is(e.Err, syscall.ENOSPC), errors.Is(e.Err, syscall.EUSERS):
		e.Missing, e.Fix = "the kernel makes no more user namespaces", "raise the limit: sysctl -w user.max_user_namespaces=10000"
	case errors.Is(e.Err, syscall.EPERM) && e.Fix == "", errors.Is(e.Err, syscall.EINVAL) && e.Fix == "", errors.Is(e.Err, syscall.ENOSYS) && e.Fix == "":
		e.Missing = "user namespaces are not allowed here"
		e.Fix = "allow them: sysctl -w kernel.unprivileged_userns_clone=1 on Debian, an AppArmor profile with userns on Ubuntu, " +
			"and in a container --security-opt seccomp=unconfined"
	}
	return e
}

// group adds control groups to the configuration, where there may be any.
func (b *Backend) group(l sandbox.Limits, cfg *staged.Config, spec *sandbox.Spec) *cgroup.Group {
	if b.opts.NoGroups {
		return nil
	}
	files := l.Work + l.Tmp + l.Shm
	for i := range spec.Trees { // in memory too
		size, _ := staged.TreeSize(&spec.Trees[i])
		files += size
	}
	return cfg.Group(l, files)
}

// command starts the stage in namespaces of its own.
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
	if spec.Network.Mode != sandbox.HostNetwork {
		flags |= syscall.CLONE_NEWNET
	}
	return &exec.Cmd{
		Path: exe, Args: []string{stage.Name}, Dir: "/",
		Env: staged.Environment(),
		SysProcAttr: &syscall.SysProcAttr{
			Cloneflags: flags, Setsid: true,
			UidMappings:                []syscall.SysProcIDMap{{ContainerID: inside, HostID: uid, Size: 1}},
			GidMappings:                []syscall.SysProcIDMap{{ContainerID: inside, HostID: gid, Size: 1}},
			GidMappingsEnableSetgroups: root,
			AmbientCaps:                capabilities,
		},
	}
}

// capabilities are what the stage needs in its own namespaces until it gives
// them up: DAC_OVERRIDE, KILL, SETGID, SETUID, SETPCAP, NET_ADMIN, SYS_PTRACE,
// SYS_ADMIN.
var capabilities = []uintptr{1, 5, 6, 7, 8, 12, 19, 21}

// enforced tells each limit and layer with what enforces it.
func enforced(s *staged.Sandbox, g *cgroup.Group, spec *sandbox.Spec) map[string]string {
	e := map[string]string{
		"filesystem":        "mount namespace, Landlock ABI " + strconv.Itoa(s.Landlock),
		"processes_visible": "process namespace", "syscalls": "seccomp", "privileges": "user namespace, no capabilities, no_new_privs",
		"memory": "RLIMIT_DATA, watch every 50 ms", "processes": "RLIMIT_NPROC", "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "sized tmpfs", "inodes": "sized tmpfs", "wall": "timer",
		"network": "network namespace",
	}
	switch spec.Network.Mode {
	case sandbox.ProxyNetwork:
		e["network"] = "network namespace, allow-list proxy"
	case sandbox.HostNetwork:
		e["network"] = ""
	}
	staged.Enforce(e, g)
	return e
}
