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

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/bundle"
	"github.com/loadout-dev/loadout/sandbox/internal/cgroup"
	"github.com/loadout-dev/loadout/sandbox/internal/filter"
	"github.com/loadout-dev/loadout/sandbox/internal/layout"
	"github.com/loadout-dev/loadout/sandbox/internal/network"
	"github.com/loadout-dev/loadout/sandbox/internal/staged"
)

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
	prog, err := b.program(ctx)
	if err != nil {
		return nil, err
	}
	var held held
	limits := spec.Limits.WithDefaults()
	setup := layout.View(spec, limits)
	exe, err := b.copies(spec, &setup, &held)
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
	cfg := &staged.Config{
		Backend: b.Name(), Trees: writable(spec), Filter: filter.For(spec),
		Graceful: true, // bubblewrap that is killed leaves its child, see arguments
		Seal: stage.Seal{
			Rlimits: staged.Rlimits(limits, true), Seccomp: true, Landlock: rules(&setup), Memory: limits.Memory, CPU: int64(limits.CPU.Seconds()),
			Inodes: int64(limits.Inodes), Counted: []string{sandbox.WorkDir, sandbox.TmpDir, "/dev/shm"}, // bubblewrap limits sizes only
			Work: sandbox.WorkDir, Skip: "in", Threads: staged.IdleThreads,
		},
		Serve: func(l net.Listener) { proxy.Serve(l) },
	}
	if proxy != nil {
		cfg.Setup.Listen = network.Port
	}
	var group *cgroup.Group
	var child child
	cfg.Closed = func() {
		child.end()
		proxy.Close()
		held.close()
		if group != nil {
			group.Remove()
		}
	}
	info, err := b.command(cfg, prog, &setup, spec, exe)
	if err != nil {
		cfg.Closed()
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	defer info.Close()
	if !b.opts.NoGroups {
		group = cfg.Group(limits, limits.Work+limits.Tmp+limits.Shm)
	}
	cfg.Attach = func(int) error { return child.attach(group, info) }
	s, err := staged.Start(ctx, proxy.Environment(spec), cfg)
	if err != nil {
		return nil, explain(err)
	}
	return &box{Sandbox: s, enforced: enforced(s, group, spec), proxy: proxy}, nil
}

// held are the copies that a sandbox uses.
type held []*bundle.Bundle

func (h held) close() {
	for _, b := range h {
		b.Close()
	}
}

func (b *Backend) root() bool { return os.Geteuid() == 0 }

// copies puts verified copies of the read-only trees into the view, and returns
// where the stage is that the user of the sandbox can start.
func (b *Backend) copies(spec *sandbox.Spec, setup *stage.Setup, held *held) (string, error) {
	cache := b.opts.Cache
	if cache == "" {
		var err error
		if cache, err = bundle.Cache(); err != nil {
			return "", &sandbox.UnavailableError{Backend: b.Name(), Missing: "a cache directory", Err: err, Fix: "set HOME or XDG_CACHE_HOME"}
		}
	}
	for i := range spec.Trees {
		t := &spec.Trees[i]
		if t.Writable() {
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
		if err := bundle.Searchable(m.Host, b.opts.UID); b.root() && err != nil && !errors.Is(err, fs.ErrNotExist) { // of which bubblewrap tells
			return "", &sandbox.UnsupportedError{Backend: b.Name(), What: fmt.Sprintf("%s to user %d, as whom it is started for root: %v", m.Host, b.opts.UID, err),
				Fix: "let others search what leads to it, use native, or run this program as another user"}
		}
	}
	exe, err := b.stage(cache, held)
	if err != nil {
		return "", &sandbox.UnavailableError{Backend: b.Name(), Missing: "its first process", Err: err,
			Fix: "put this program where every user can reach it"}
	}
	if b.root() {
		if err := bundle.Reachable(exe, b.opts.UID); err != nil {
			return "", &sandbox.UnavailableError{Backend: b.Name(), Missing: fmt.Sprintf("a cache directory that user %d can reach, as bubblewrap must not be started as root", b.opts.UID), Err: err,
				Fix: "name one with an open path, or run this program as another user"}
		}
	}
	return exe, nil
}

// stage is the executable to start in the sandbox: this one, or a copy of it if
// it is not there any more or for another user.
func (b *Backend) stage(cache string, held *held) (string, error) {
	exe := b.opts.Stage
	if exe == "" {
		var err error
		if exe, err = os.Executable(); err != nil {
			return "", err
		}
		now, err := os.Stat(exe)
		self, err2 := os.Stat("/proc/self/exe")
		if err != nil || err2 != nil || !os.SameFile(now, self) {
			exe = "/proc/self/exe" // it was replaced
		}
	}
	if !b.root() && exe != "/proc/self/exe" {
		return exe, nil
	}
	path, c, err := bundle.Program(cache, exe)
	if err != nil {
		return "", err
	}
	*held = append(*held, c)
	return path, nil
}

// writable are the trees that the stage is given once it runs.
func writable(spec *sandbox.Spec) []sandbox.Tree {
	var out []sandbox.Tree
	for _, t := range spec.Trees {
		if t.Writable() {
			out = append(out, t)
		}
	}
	return out
}

// rules are those of Landlock, which here adds to what the mounts say.
func rules(s *stage.Setup) *stage.Landlock {
	if stage.LandlockABI() == 0 {
		return nil
	}
	l := layout.Rules(s)
	l.Least = 1
	return l
}

// command completes the configuration with what starts bubblewrap. What it
// tells of itself can be read from the file.
func (b *Backend) command(cfg *staged.Config, p *program, s *stage.Setup, spec *sandbox.Spec, exe string) (info *os.File, err error) {
	args, texts := arguments(p, s, spec, exe)
	cmd := &exec.Cmd{Path: p.path, Args: append([]string{"bwrap"}, args...), Env: []string{}, Dir: "/", SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if b.root() {
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
	// bubblewrap has a reader of its own: where this program has been killed, it
	// must not end by what it writes while its child waits for it.
	fd, err := unix.FcntlInt(info.Fd(), unix.F_DUPFD_CLOEXEC, 0)
	if err == nil {
		err = syscall.SetNonblock(int(info.Fd()), true) // Fd has made it block
	}
	if err != nil {
		info.Close()
		return nil, err
	}
	cmd.ExtraFiles = append(cmd.ExtraFiles, os.NewFile(uintptr(fd), "reader"))
	cfg.Command = cmd
	return info, nil
}

// child is the process in the sandbox that bubblewrap starts, which becomes the
// stage.
type child struct {
	mu sync.Mutex
	fd int // of the process, guarded by mu; 0 until it is known
}

// attach puts the child into the group, if there is one. bubblewrap tells its
// number; it starts nothing before it is sealed, which happens after this.
func (c *child) attach(g *cgroup.Group, info io.Reader) error {
	var said struct {
		Child int `json:"child-pid"`
	}
	err := json.NewDecoder(info).Decode(&said)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return nil // bubblewrap has ended, and says why elsewhere
	}
	if err == nil && said.Child <= 0 {
		err = errors.New("it does not tell what it started")
	}
	if err != nil {
		return fmt.Errorf("start bubblewrap: %w", err)
	}
	if fd, err := unix.PidfdOpen(said.Child, 0); err == nil { // since Linux 5.3
		c.mu.Lock()
		c.fd = fd
		c.mu.Unlock()
	}
	if g == nil {
		return nil
	}
	if err = g.Attach(said.Child); errors.Is(err, syscall.ESRCH) {
		return nil // the same
	}
	return err
}

// end ends the child where bubblewrap has ended without it.
func (c *child) end() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fd > 0 {
		unix.PidfdSendSignal(c.fd, unix.SIGKILL, nil, 0) // where it has ended, nothing
		unix.Close(c.fd)
		c.fd = 0
	}
}

// explain adds what to do where bubblewrap may not make namespaces.
func explain(err error) error {
	e, ok := errors.AsType[*sandbox.UnavailableError](err)
	if ok && e.Fix == "" && e.Err != nil && (strings.Contains(e.Err.Error(), "namespace") || strings.Contains(e.Err.Error(), "ermission")) {
		e.Fix = "let bwrap use user namespaces: kernel.unprivileged_userns_clone=1, user.max_user_namespaces above 0; on Ubuntu an AppArmor profile for bwrap with userns"
	}
	return err
}

// enforced tells each limit and layer with what enforces it.
func enforced(s *staged.Sandbox, g *cgroup.Group, spec *sandbox.Spec) map[string]string {
	e := map[string]string{
		"filesystem":        "mount namespace",
		"processes_visible": "process namespace", "syscalls": "seccomp", "privileges": "user namespace, no capabilities, no_new_privs",
		"memory": "RLIMIT_DATA, watch every 50 ms", "processes": "RLIMIT_NPROC", "cpu": "RLIMIT_CPU", "cores": "",
		"file_size": "RLIMIT_FSIZE", "open_files": "RLIMIT_NOFILE", "disk": "sized tmpfs", "inodes": "watch every 2 to 50 ms", "wall": "timer",
		"network": "network namespace",
	}
	if s.Landlock > 0 {
		e["filesystem"] += ", Landlock ABI " + strconv.Itoa(s.Landlock)
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
