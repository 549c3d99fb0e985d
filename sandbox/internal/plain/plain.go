//go:build unix

// Package plain runs commands in the layout in real directories (see box) by
// what every Unix has: a session of its own for each command, which is killed
// as a group. It limits only the size of what is written. It is what process
// and seatbelt are made of where there is no Linux.
package plain

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

	"github.com/loadout-dev/loadout/sandbox"
	"github.com/loadout-dev/loadout/sandbox/internal/box"
)

// Options say how commands are run.
type Options struct {
	Box box.Options
	// Wrap makes the arguments of another program of the arguments of a command,
	// for one that confines it; nil leaves them. It is called once a command.
	Wrap func(*box.Box, []string) []string
	// Enforced is what the sandbox enforces.
	Enforced map[string]string
	// Denied are the hosts that were refused; nil is none.
	Denied func() []string
	// Closed is called when all has ended; nil does nothing.
	Closed func()
}

// Sandbox is a private directory with the processes that were started in it.
type Sandbox struct {
	opts    Options
	spec    *sandbox.Spec
	box     *box.Box
	ended   chan struct{}
	watched chan struct{}

	mu      sync.Mutex
	closed  bool
	running map[*process]bool
}

var _ sandbox.Sandbox = (*Sandbox)(nil)

// Start makes the directory.
func Start(spec *sandbox.Spec, opts Options) (*Sandbox, error) {
	x, err := box.New(opts.Box, spec)
	if err != nil {
		return nil, err
	}
	s := &Sandbox{opts: opts, spec: spec, box: x, ended: make(chan struct{}), watched: make(chan struct{}), running: map[*process]bool{}}
	go func() {
		defer close(s.watched)
		x.Watch(spec.Limits.WithDefaults(), s.ended, s.busy, s.stop)
	}()
	return s, nil
}

func (s *Sandbox) all() []*process {
	s.mu.Lock()
	defer s.mu.Unlock()
	var out []*process
	for p := range s.running {
		out = append(out, p)
	}
	return out
}

func (s *Sandbox) busy() bool { return len(s.all()) > 0 }

// stop ends all commands, as there is too much on disk.
func (s *Sandbox) stop(why string) {
	for _, p := range s.all() {
		p.mu.Lock()
		if p.stopped == "" {
			p.stopped = why
		}
		p.mu.Unlock()
		p.Kill()
	}
}

// Box is the sandbox's directory.
func (s *Sandbox) Box() *box.Box { return s.box }

// State says what is enforced in this sandbox.
func (s *Sandbox) State() sandbox.State {
	st := sandbox.State{Enforced: maps.Clone(s.opts.Enforced)}
	if s.opts.Denied != nil {
		st.Denied = s.opts.Denied()
	}
	return st
}

// Collect hands over the files below the work directory.
func (s *Sandbox) Collect(ctx context.Context, visit func(sandbox.File, io.Reader) error) error {
	return s.box.Collect(ctx, visit)
}

// Close ends what was started and removes the directory.
func (s *Sandbox) Close() error {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	for _, p := range s.all() {
		p.Kill()
		<-p.done
	}
	close(s.ended)
	<-s.watched
	err := s.box.Close()
	if s.opts.Closed != nil {
		s.opts.Closed()
	}
	return err
}

// Exec starts a command.
func (s *Sandbox) Exec(ctx context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, errors.New("sandbox: a command without a program")
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	args := cmd.Arguments(s.box.At)
	env := s.spec.Environment(cmd, s.box.At)
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
		dir.Args[0] = sandbox.WorkDir
	}
	p := &process{s: s, done: make(chan struct{})}
	p.cmd = &exec.Cmd{Path: args[0], Args: args, Env: env, Dir: dir.Arguments(s.box.At)[0], SysProcAttr: &syscall.SysProcAttr{Setsid: true}}
	if uid := s.opts.Box.UID; uid != 0 {
		p.cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(uid)}
	}
	if err := p.start(); err != nil {
		if pe, ok := errors.AsType[*os.PathError](err); ok {
			err = pe.Err
		}
		return nil, &sandbox.StartError{Program: cmd.Args[0], Err: err}
	}
	return p, nil
}

// lookPath finds a program in the PATH of an environment.
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

// process is one command.
type process struct {
	s                     *Sandbox
	cmd                   *exec.Cmd
	stdin, stdout, stderr *os.File
	done                  chan struct{}
	exit                  sandbox.Exit

	mu      sync.Mutex
	reaped  bool   // its number may be another's
	stopped string // why it was ended by us
}

var _ sandbox.Process = (*process)(nil)

func (p *process) start() error {
	var theirs [3]*os.File
	defer func() {
		for _, f := range theirs {
			f.Close() // of nil too
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
		return fail(errors.New("the sandbox has ended"))
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
	syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL) // what it left: a group's number is not given again while it has members
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
func (p *process) Stdout() io.Reader     { return output{p.stdout} }
func (p *process) Stderr() io.Reader     { return output{p.stderr} }

// output is an end of a pipe that closes itself when everything was read.
type output struct{ f *os.File }

func (o output) Read(b []byte) (int, error) {
	n, err := o.f.Read(b)
	if err != nil {
		o.f.Close()
		if errors.Is(err, os.ErrClosed) {
			err = io.EOF
		}
	}
	return n, err
}

// Wait waits for the end of the command.
func (p *process) Wait() sandbox.Exit {
	<-p.done
	return p.exit
}

// Kill ends the command's process group.
func (p *process) Kill() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.reaped {
		syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	}
}
