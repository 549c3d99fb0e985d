//go:build linux

// Package launcher starts a stage (package stage) and communicates with it, for
// all Linux backends. It streams verified files to the stage and implements
// [sandbox.Sandbox] with the messages of the stage. The backend decides how to
// isolate the stage.
package launcher

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

	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// Config describes a sandbox to start.
type Config struct {
	Backend string
	// Command starts the stage. Its first extra file becomes the socket. Start
	// closes all extra files.
	Command *exec.Cmd
	// Bound reports whether a parent-death signal kills the command when the
	// thread that started it exits.
	Bound bool
	Setup stage.Setup
	Trees []sandbox.Tree // streamed to the stage; read-only trees are verified
	// Filter returns the seccomp program. If Filter is nil, no program is
	// installed.
	Filter       func() ([]byte, error)
	Restrictions stage.Restrictions
	// Attach, if set, is called with the PID of the stage before the stage
	// starts anything.
	Attach func(pid int) error
	// Serve is called with the listener that the setup requested in the
	// sandbox.
	Serve func(net.Listener)
	// HostPath returns the host path for a path in the layout. If HostPath is
	// nil, the paths are the same.
	HostPath func(string) string
	// Graceful makes the launcher ask the process to kill its children before
	// killing it. It is needed if the kernel does not kill them; see
	// [stage.Guard].
	Graceful bool
	// EndReason returns the reason if the sandbox ended on its own.
	EndReason func() (sandbox.Reason, string)
	// OnClose is called after all processes have exited.
	OnClose func()
}

// grace is how long to wait for a stage action that should be immediate.
const grace = 2 * time.Second

// Sandbox controls a running stage over its socket. It implements
// [sandbox.Sandbox] except for State.
type Sandbox struct {
	cfg    *Config
	spec   *sandbox.Spec
	conn   *net.UnixConn
	stderr *headBuffer
	ended  chan struct{} // closed when the stage has exited
	// Landlock is the Landlock ABI version in use, or 0.
	Landlock int
	// OverlayError is why the stage could not mount an overlay, or "".
	OverlayError string

	writing sync.Mutex
	mu      sync.Mutex
	next    int
	waiting map[int]chan answer // pending Exec and Collect requests
	procs   map[int]*process
	closing sync.Once
}

// answer is the stage's response to a request.
type answer struct {
	started   stage.Started
	collected stage.Collected
	err       error
}

// Start starts the stage and waits until the sandbox is restricted.
func Start(ctx context.Context, spec *sandbox.Spec, cfg *Config) (*Sandbox, error) {
	if cfg.HostPath == nil {
		cfg.HostPath = func(p string) string { return p }
	}
	s := &Sandbox{cfg: cfg, spec: spec, stderr: &headBuffer{}, ended: make(chan struct{}), waiting: map[int]chan answer{}, procs: map[int]*process{}}
	if err := s.launch(); err != nil {
		if cfg.OnClose != nil {
			cfg.OnClose()
		}
		return nil, err
	}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, err
	}
	go s.dispatch()
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
		start = func() error { return onPermanentThread(cmd.Start) }
	}
	if err := start(); err != nil {
		s.conn.Close()
		return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "cannot start the first process", Err: err}
	}
	go func() {
		cmd.Wait()
		close(s.ended)
	}()
	return nil
}

// prepare sends the setup to the stage and waits for the response. It sends the
// whole setup without waiting for intermediate responses.
func (s *Sandbox) prepare(ctx context.Context) error {
	stop := context.AfterFunc(ctx, s.terminate)
	defer stop()
	attached := make(chan error, 1)
	if attach := s.cfg.Attach; attach != nil {
		go func() { attached <- attach(s.cfg.Command.Process.Pid) }()
	} else {
		attached <- nil
	}
	sent := make(chan error, 1)
	go func() { sent <- s.sendSetup(attached) }()
	ready, listener, err := s.readReady()
	if err != nil {
		s.terminate() // unblocks pending writes
	}
	sendErr := <-sent
	if sendErr != nil && !isClosed(sendErr) {
		return sendErr
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		<-s.ended
		return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "first process ended during setup", Err: errors.New(s.stderr.firstLine())}
	case ready.Error != "":
		return s.setupError(ready)
	}
	s.Landlock, s.OverlayError = ready.Landlock, ready.Overlay
	if listener != nil && s.cfg.Serve != nil {
		s.cfg.Serve(listener)
	}
	return nil
}

// setupError returns the error for a failed step of the stage.
func (s *Sandbox) setupError(r *stage.Ready) error {
	var err error = errors.New(r.Error)
	if r.Errno != 0 {
		err = syscall.Errno(r.Errno)
	}
	return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "cannot " + r.Step, Err: err, Fix: fixFor(r.Step)}
}

func (s *Sandbox) sendSetup(attached <-chan error) error {
	if err := s.send(stage.KindSetup, &s.cfg.Setup); err != nil {
		return err
	}
	for i := range s.cfg.Trees {
		if err := s.stream(&s.cfg.Trees[i]); err != nil {
			s.conn.CloseWrite() // the stage exits when the socket is closed
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
	return s.send(stage.KindRestrict, &s.cfg.Restrictions)
}

// isClosed reports whether a write failed only because the stage has exited.
func isClosed(err error) bool {
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

// readReady reads the stage's response to the setup, and the listener sent with
// it.
func (s *Sandbox) readReady() (*stage.Ready, net.Listener, error) {
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
	if _, err := s.readBody(header, &r); err != nil {
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
