//go:build linux

// Package launcher starts a stage (package stage) and communicates with it, for
// all Linux backends. It streams verified files to the stage and implements
// [sandbox.Sandbox] with the messages of the stage. The backend decides how to
// isolate the stage.
package launcher

import (
	"context"
	"errors"
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
	// Command starts the stage. The first extra file of the stage is the socket.
	// Start closes all extra files.
	Command *exec.Cmd
	// Stage, if set, is a running stage to use. Command is ignored then.
	Stage *Stage
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
	// starts any command.
	Attach func(pid int) error
	// CloneInto, if set, opens the directory of a version 2 control group. The
	// command starts in this group if the kernel supports that. Attach is not
	// called then.
	CloneInto func() (*os.File, error)
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
	*Stage
	cfg  *Config
	spec *sandbox.Spec

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

// Start starts the stage, unless cfg.Stage is set, and waits until the sandbox is
// restricted.
func Start(ctx context.Context, spec *sandbox.Spec, cfg *Config) (*Sandbox, error) {
	if cfg.HostPath == nil {
		cfg.HostPath = func(p string) string { return p }
	}
	running := cfg.Stage
	if running == nil {
		var err error
		if running, err = launch(cfg); err != nil {
			if cfg.OnClose != nil {
				cfg.OnClose()
			}
			return nil, err
		}
	}
	s := &Sandbox{cfg: cfg, spec: spec, Stage: running, waiting: map[int]chan answer{}, procs: map[int]*process{}}
	if err := s.prepare(ctx); err != nil {
		s.Close()
		return nil, err
	}
	go s.dispatch()
	return s, nil
}

// prepare sends the setup to the stage and waits for the response. It sends the
// whole setup without waiting for intermediate responses.
func (s *Sandbox) prepare(ctx context.Context) (failed error) {
	stop := context.AfterFunc(ctx, s.terminate)
	defer stop()
	attached := make(chan error, 1)
	go func() { // the kernel may take long, so the stage prepares meanwhile
		err := s.attach(s.cfg)
		if err != nil {
			s.conn.CloseWrite() // the stage exits when the socket is closed
		}
		attached <- err
	}()
	sent := make(chan error, 1)
	go func() { sent <- s.sendSetup() }()
	ready, listener, err := s.readReady()
	if err != nil {
		s.terminate() // unblocks pending writes
	}
	sendErr, attachErr := <-sent, <-attached
	defer func() {
		if failed != nil && listener != nil {
			listener.Close()
		}
	}()
	if sendErr != nil && !isClosed(sendErr) {
		return sendErr
	}
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case attachErr != nil && !errors.Is(attachErr, syscall.ESRCH): // no command has started
		return attachErr
	case err != nil:
		<-s.ended
		return &sandbox.UnavailableError{Backend: s.cfg.Backend, Missing: "first process ended during setup", Err: errors.New(s.stderr.firstLine())}
	case ready.Error != "":
		return s.setupError(ready)
	case attachErr != nil:
		return attachErr
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

func (s *Sandbox) sendSetup() error {
	if err := s.send(stage.KindSetup, &s.cfg.Setup); err != nil {
		return err
	}
	for i := range s.cfg.Trees {
		if err := s.stream(&s.cfg.Trees[i]); err != nil {
			s.conn.CloseWrite() // the stage exits when the socket is closed
			return err
		}
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
