//go:build linux

// Package staged is a sandbox whose first process is our stage (internal/stage):
// the half on our side of the socket, which the Linux back ends share. It starts
// the stage, streams verified files to it, and makes its messages a
// [sandbox.Sandbox]. It decides nothing about isolation: the back end that uses
// it does.
package staged

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"github.com/loadout-dev/loadout/internal/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Config says what to start.
type Config struct {
	Backend string
	// Command starts the stage; its first extra file will be the socket. All of
	// its extra files are closed once it has them.
	Command *exec.Cmd
	// Bound is set where the command ends with the thread that started it, as
	// the kernel has it for the signal at a parent's death.
	Bound bool
	Setup stage.Setup
	Trees []sandbox.Tree // to stream to the stage; read-only ones verified
	// Filter is the seccomp program; nil is none.
	Filter func() ([]byte, error)
	Seal   stage.Seal
	// Attach is given the stage before it may start anything; nil does nothing.
	Attach func(pid int) error
	// Serve is given the listener in the sandbox that Setup asked for.
	Serve func(net.Listener)
	// At says where the layout is; nil is in place.
	At func(string) string
	// Graceful tells what was started to end what it started, and kills it only if
	// it does not: where the kernel does not end all with it, see [stage.Guard].
	Graceful bool
	// Lost says why a sandbox may have ended by itself, after it has.
	Lost func() (sandbox.Reason, string)
	// Closed is called when all has ended.
	Closed func()
}

// grace is how long a stage may take for what it does at once.
const grace = 2 * time.Second

// Sandbox is a running stage. It is a sandbox but for its State.
type Sandbox struct {
	cfg    *Config
	spec   *sandbox.Spec
	conn   *net.UnixConn
	stderr *head
	ended  chan struct{} // closed when the stage has ended
	// Landlock is the ABI in force, 0 where there is none.
	Landlock int

	writing sync.Mutex
	mu      sync.Mutex
	next    int
	waiting map[int]chan answer // Exec and Collect
	procs   map[int]*process
	closing sync.Once
}

// answer is what the stage says to a request.
type answer struct {
	started   stage.Started
	collected stage.Collected
	err       error
}

// Start starts the stage and waits until the sandbox is sealed.
func Start(ctx context.Context, spec *sandbox.Spec, cfg *Config) (*Sandbox, error) {
	if cfg.At == nil {
		cfg.At = sandbox.InPlace
	}
	s := &Sandbox{cfg: cfg, spec: spec, stderr: &head{}, ended: make(chan struct{}), waiting: map[int]chan answer{}, procs: map[int]*process{}}
	if err := s.launch(); err != nil {
		if cfg.Closed != nil {
			cfg.Closed()
		}
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, err
	}
	go s.receive()
	return s, nil
}

func (s *Sandbox) launch() error {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "stage"), os.NewFile(uintptr(fds[1]), "stage")
	defer ours.Close()
	cmd := s.cfg.Command
	cmd.ExtraFiles = append([]*os.File{theirs}, cmd.ExtraFiles...)
	cmd.Stderr = s.stderr
	cmd.WaitDelay = grace
	defer func() {
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
	}()
	conn, err := net.FileConn(ours)
	if err != nil {
		return fmt.Errorf("start sandbox: %w", err)
	}
	s.conn = conn.(*net.UnixConn)
	start := cmd.Start
	if s.cfg.Bound {
		start = func() error { return onLastingThread(cmd.Start) }
	}
	if err := start(); err != nil {
		s.conn.Close()
		return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "its first process cannot be started", Err: err}
	}
	go func() {
		cmd.Wait()
		close(s.ended)
	}()
	return nil
}

// prepare tells the stage what to build and waits for its word. Everything is
// sent without waiting in between.
func (s *Sandbox) prepare(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.end)
	defer stop()
	attached := make(chan error, 1)
	if attach := s.cfg.Attach; attach != nil {
		go func() { attached <- attach(s.cfg.Command.Process.Pid) }()
	} else {
		attached <- nil
	}
	sent := make(chan error, 1)
	go func() { sent <- s.instruct(attached) }()
	ready, listener, err := s.ready()
	if err != nil {
		s.end() // so that whoever still sends ends
	}
	sendErr := <-sent
	if sendErr != nil && !closed(sendErr) {
		return sendErr
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		<-s.ended
		return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "the first process ended while it prepared", Err: errors.New(s.stderr.line())}
	case ready.Error != "":
		return s.refused(ready)
	}
	s.Landlock = ready.Landlock
	if listener != nil && s.cfg.Serve != nil {
		s.cfg.Serve(listener)
	}
	return nil
}

// refused makes an error of what the stage could not do.
func (s *Sandbox) refused(r *stage.Ready) error {
	var err error = errors.New(r.Error)
	if r.Errno != 0 {
		err = syscall.Errno(r.Errno)
	}
	return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "cannot " + r.Step, Err: err, Fix: fixFor(r.Step)}
}

func (s *Sandbox) instruct(attached <-chan error) error {
	if err := s.send(stage.KindSetup, &s.cfg.Setup); err != nil {
		return err
	}
	for i := range s.cfg.Trees {
		if err := s.stream(&s.cfg.Trees[i]); err != nil {
			s.conn.CloseWrite() // nothing more will come, so it ends
			return err
		}
	}
	if err := <-attached; err != nil {
		s.conn.CloseWrite()
		return err
	}
	if s.cfg.Filter != nil {
		program, err := s.cfg.Filter()
		if err != nil {
			s.conn.CloseWrite()
			return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "seccomp", Err: err}
		}
		if err := s.sendBytes(stage.KindFilter, program); err != nil {
			return err
		}
	}
	return s.send(stage.KindSeal, &s.cfg.Seal)
}

// closed reports whether an error of writing says no more than that the stage
// has gone.
func closed(err error) bool {
	return errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, net.ErrClosed)
}

func (s *Sandbox) send(kind uint32, body any, files ...*os.File) error {
	b, err := stage.Frame(kind, body)
	if err != nil {
		return err
	}
	var oob []byte
	if len(files) > 0 {
		fds := make([]int, len(files))
		for i, f := range files {
			fds[i] = int(f.Fd())
		}
		oob = syscall.UnixRights(fds...)
	}
	s.writing.Lock()
	defer s.writing.Unlock()
	n, _, err := s.conn.WriteMsgUnix(b, oob, nil)
	if err == nil && n < len(b) {
		_, err = s.conn.Write(b[n:])
	}
	return err
}

func (s *Sandbox) sendBytes(kind uint32, b []byte) error {
	s.writing.Lock()
	defer s.writing.Unlock()
	_, err := (&net.Buffers{stage.FrameBytes(kind, len(b)), b}).WriteTo(s.conn)
	return err
}

// ready reads the stage's word and the listener that comes with it.
func (s *Sandbox) ready() (*stage.Ready, net.Listener, error) {
	header := make([]byte, len(stage.FrameBytes(0, 0)))
	oob := make([]byte, syscall.CmsgSpace(4))
	n, oobn, _, _, err := s.conn.ReadMsgUnix(header, oob)
	if err == nil && n < len(header) {
		_, err = io.ReadFull(s.conn, header[n:])
	}
	if err != nil {
		return nil, nil, err
	}
	var r stage.Ready
	if _, err := s.body(header, &r); err != nil {
		return nil, nil, err
	}
	if oobn == 0 {
		return &r, nil, nil
	}
	msgs, err := syscall.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(msgs) == 0 {
		return &r, nil, err
	}
	fds, err := syscall.ParseUnixRights(&msgs[0])
	if err != nil || len(fds) == 0 {
		return &r, nil, err
	}
	f := os.NewFile(uintptr(fds[0]), "listener")
	defer f.Close()
	syscall.CloseOnExec(fds[0])
	l, err := net.FileListener(f)
	return &r, l, err
}
