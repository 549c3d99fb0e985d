//go:build unix

// Package direct runs commands in a [rundir.Dir] using features that every Unix
// system has: each command runs in its own session and is killed as a process
// group. The only limit is the size of written files. The process and seatbelt
// backends use this package on systems other than Linux.
package direct

import (
	"context"
	"errors"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/fileerror"
	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/rundir"
	"github.com/loadout-dev/loadout/sandbox"
)

// Options configures a [Sandbox].
type Options struct {
	Dir rundir.Options
	// Wrap returns the arguments that run a command under another program, such
	// as one that confines it. If Wrap is nil, the command runs directly. Wrap
	// is called once per command.
	Wrap func(*rundir.Dir, []string) []string
	// Enforced maps each limit and layer to the mechanism that enforces it.
	Enforced map[string]string
	// Denied returns the hosts to which connections were refused. It may be
	// nil.
	Denied func() []string
	// OnClose, if set, is called after the sandbox has been closed.
	OnClose func()
}

// Sandbox runs commands in a directory of the host. It implements
// [sandbox.Sandbox].
type Sandbox struct {
	opts    Options
	spec    *sandbox.Spec
	box     *rundir.Dir
	ended   chan struct{}
	watched chan struct{}

	mu      sync.Mutex
	closed  bool
	running map[*process]bool
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// Start creates a sandbox and its directory.
func Start(spec *sandbox.Spec, opts Options) (*Sandbox, error) {
	x, err := rundir.New(opts.Dir, spec)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{opts: opts, spec: spec, box: x, ended: make(chan struct{}), watched: make(chan struct{}), running: map[*process]bool{}}
	go func() {
		defer close(s.watched)
		x.Watch(prepare.Limits(spec), s.ended, s.isBusy, s.stopAll)
	}()
	return s, nil
}

func (s *Sandbox) commands() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*process
	for p := range s.running {
		out = append(out, p)
	}
	return out
}

func (s *Sandbox) isBusy() bool { return len(s.commands()) > 0 }

// stopAll kills all commands because a disk limit was exceeded.
func (s *Sandbox) stopAll(why string) {
	for _, p := range s.commands() {
		p.mu.Lock()
		if p.stopped == "" {
			p.stopped = why
		}
		p.mu.Unlock()
		p.Kill()
	}
}

// Dir returns the host directory that holds the sandbox's files.
func (s *Sandbox) Dir() *rundir.Dir { return s.box }

// State implements [sandbox.Sandbox].
func (s *Sandbox) State() sandbox.State {
	st := sandbox.State{Enforced: maps.Clone(s.opts.Enforced)}
	if s.opts.Denied != nil {
		st.Denied = s.opts.Denied()
	}
	return st
}

// Collect implements [sandbox.Sandbox].
func (s *Sandbox) Collect(ctx context.Context, visit func(sandbox.File, io.Reader) error) error {
	return s.box.Collect(ctx, visit)
}

// Close kills all commands and removes the directory.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	for _, p := range s.commands() {
		p.Kill()
		<-p.done
	}
	close(s.ended)
	<-s.watched
	err := s.box.Close()
	if s.opts.OnClose != nil {
		s.opts.OnClose()
	}
	return err
}

// Exec implements [sandbox.Sandbox]. The command runs in its own session.
func (s *Sandbox) Exec(ctx context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, errors.New("sandbox: empty command")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args := prepare.Arguments(cmd, s.box.HostPath)
	env := prepare.Environment(s.spec, cmd, s.box.HostPath)
	path, err := lookPath(args[0], env)
	if err != nil {
		return nil, &sandbox.StartError{Program: cmd.Args[0], Err: err}
	}
	args[0] = path
	if s.opts.Wrap != nil {
		args = s.opts.Wrap(s.box, args)
	}
	dir := sandbox.Cmd{Args: []string{cmd.Dir}}
	if cmd.Dir == "" {
		dir.Args[0] = mountpoint.Work
	}
	p := &process{s: s, done: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: args[0], Args: args, Env: env, Dir: prepare.Arguments(&dir, s.box.HostPath)[0], SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if uid := s.opts.Dir.UID; uid != 0 {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	if err := p.start(); err != nil {
		return nil, &sandbox.StartError{Program: cmd.Args[0], Err: fileerror.Cause(err)}
	}
	return p, nil
}

// lookPath finds a program in the PATH of env.
func lookPath(program string, env []string) (string, error) {
	if strings.Contains(program, "/") {
		return program, nil
	}
	for _, kv := range env {
		dirs, _ := strings.CutPrefix(kv, "PATH=")
		if dirs == kv {
			continue
		}
		for _, dir := range filepath.SplitList(dirs) {
			p := filepath.Join(dir, program)
			if fi, err := os.Stat(p); err == nil && fi.Mode().IsRegular() && fi.Mode()&0o111 != 0 {
				return p, nil
			}
		}
	}
	return "", syscall.ENOENT
}

// process is a command that was started in the sandbox.
type process struct {
	s                     *Sandbox
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	done                  chan struct{}
	exit                  sandbox.Exit

	mu      sync.Mutex
	reaped  bool   // whether it was reaped, so that its PID may be reused
	stopped string // reason why this program killed it, or ""
}

var _ sandbox.Process = (*process)(nil)

func (p *process) start() error {
	var theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // may be nil
		}
	}()
	ours := [3]**os.File{&p.stdin, &p.stdout, &p.stderr}
	fail := func(err error) error {
		for _, f := range ours {
			(*f).Close()
		}
		return err
	}
	for i := range theirs {
		r, w, err := os.Pipe()
		if err != nil {
			return fail(err)
		}
		if theirs[i], *ours[i] = w, r; i == 0 {
			theirs[i], *ours[i] = r, w
		}
	}
	p.cmd.Stdin, p.cmd.Stdout, p.cmd.Stderr = theirs[0], theirs[1], theirs[2]
	p.s.mu.Lock()
	defer p.s.mu.Unlock()
	if p.s.closed {
		return fail(errors.New("sandbox has ended"))
	}
	if err := p.cmd.Start(); err != nil {
		return fail(err)
	}
	p.s.running[p] = true
	go p.wait()
	return nil
}

func (p *process) wait() {
	p.cmd.Wait()
	p.mu.Lock()
	p.reaped = true
	p.mu.Unlock()
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // kill its children: the group ID is not reused while the group has members
	ws, _ := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	p.exit = sandbox.Exit{Code: ws.ExitStatus(), Reason: sandbox.Exited, CPU: p.cmd.ProcessState.UserTime() + p.cmd.ProcessState.SystemTime()}
	if use, ok := p.cmd.ProcessState.SysUsage().(*syscall.Rusage); ok {
		p.exit.MaxRSS = int64(use.Maxrss) * rssUnit
	}
	switch {
	case ws.Signaled():
		p.exit.Code, p.exit.Signal = 128+int(ws.Signal()), unix.SignalName(ws.Signal())
		p.mu.Lock()
		if p.stopped != "" {
			p.exit.Reason, p.exit.Detail = sandbox.FileSize, p.stopped
		}
		p.mu.Unlock()
	case p.exit.Code == 0:
		p.exit.Reason = sandbox.OK
	}
	p.stdin.Close()
	p.s.mu.Lock()
	delete(p.s.running, p)
	p.s.mu.Unlock()
	close(p.done)
}

func (p *process) Stdin() io.WriteCloser { return p.stdin }
func (p *process) Stdout() io.Reader     { return pipeReader{p.stdout} }
func (p *process) Stderr() io.Reader     { return pipeReader{p.stderr} }

// pipeReader is a reader that is closed at EOF.
type pipeReader struct{ f *os.File }

func (o pipeReader) Read(b []byte) (int, error) {
	n, err := o.f.Read(b)
	if err != nil {
		o.f.Close()
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// Wait waits until the command has exited and returns its exit status.
func (p *process) Wait() sandbox.Exit {
	<-p.done
	return p.exit
}

// Kill kills the command's process group.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}
