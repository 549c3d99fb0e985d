//go:build linux

package launcher

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/internal/sandbox/stage"
	"github.com/loadout-dev/loadout/sandbox"
)

// process is a command that was started in the sandbox.
type process struct {
	s                     *Sandbox
	id                    int
	stdin, stdout, stderr *os.File
	done                  chan struct{}
	exit                  sandbox.Exit

	// overdue and stopped are guarded by s.mu.
	overdue *time.Timer    // set by Kill
	stopped sandbox.Reason // set by Stop
	detail  string
}

var _ sandbox.Process = (*process)(nil)

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

// Kill kills the command. If the stage does not respond, Kill stops the whole
// sandbox.
func (p *process) Kill() {
	select {
	case <-p.done:
		return
	default:
	}
	p.s.mu.Lock()
	if p.overdue == nil {
		p.overdue = time.AfterFunc(grace, p.s.terminate)
	}
	p.s.mu.Unlock()
	p.s.send(stage.KindKill, &stage.Kill{ID: p.id}) // a failure means that the stage has exited
}

// finish records how the command exited. It must be called once.
func (p *process) finish(e sandbox.Exit) {
	p.s.mu.Lock()
	if p.overdue != nil {
		p.overdue.Stop()
	}
	p.s.mu.Unlock()
	p.exit = e
	p.stdin.Close() // the read end is closed
	close(p.done)
}

// fail finishes a command whose stage has exited.
func (p *process) fail() {
	e := sandbox.Exit{Code: 128 + int(syscall.SIGKILL), Signal: "SIGKILL", Reason: sandbox.Exited}
	if p.s.cfg.EndReason != nil {
		if why, detail := p.s.cfg.EndReason(); why != "" {
			e.Reason, e.Detail = why, detail
		}
	}
	p.finish(e)
}

// Exec implements [sandbox.Sandbox]. The stage starts the command.
func (s *Sandbox) Exec(ctx context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	if len(cmd.Args) == 0 || cmd.Args[0] == "" {
		return nil, errors.New("sandbox: empty command")
	}
	var ours, theirs [3]*os.File
	closeAll := func(files [3]*os.File) {
		for _, f := range files {
			if f != nil {
				f.Close()
			}
		}
	}
	for i := range ours {
		r, w, err := os.Pipe()
		if err != nil {
			closeAll(ours)
			closeAll(theirs)
			return nil, fmt.Errorf("start command: %w", err)
		}
		if ours[i], theirs[i] = r, w; i == 0 {
			ours[i], theirs[i] = w, r
		}
	}
	args := prepare.Arguments(cmd, s.cfg.HostPath)
	dir := cmd.Dir
	if dir == "" {
		dir = mountpoint.Work
	}
	id, answered := s.addRequest()
	p := &process{s: s, id: id, stdin: ours[0], stdout: ours[1], stderr: ours[2], done: make(chan struct{})}
	s.mu.Lock()
	s.procs[id] = p
	s.mu.Unlock()
	forget := func() {
		s.mu.Lock()
		delete(s.procs, id)
		delete(s.waiting, id)
		s.mu.Unlock()
		closeAll(ours)
	}
	err := s.send(stage.KindExec, &stage.Exec{ID: id, Path: args[0], Args: args, Env: prepare.Environment(s.spec, cmd, s.cfg.HostPath), Dir: translateDir(dir, s.cfg.HostPath)}, theirs[:]...)
	closeAll(theirs)
	if err != nil {
		forget()
		return nil, fmt.Errorf("start command: %w", errGone)
	}
	select {
	case a := <-answered:
		switch {
		case a.err != nil:
			forget()
			return nil, fmt.Errorf("start command: %w", a.err)
		case a.started.Error != "":
			forget()
			err := error(errors.New(a.started.Error))
			if a.started.Errno != 0 {
				err = syscall.Errno(a.started.Errno)
			}
			return nil, &sandbox.StartError{Program: cmd.Args[0], Err: err}
		}
		return p, nil
	case <-ctx.Done():
		p.Kill()
		go func() { <-p.done; closeAll(ours) }()
		return nil, ctx.Err()
	}
}

func translateDir(dir string, at func(string) string) string {
	c := sandbox.Cmd{Args: []string{dir}}
	return prepare.Arguments(&c, at)[0]
}

// finishCommand finishes a command after the stage reported that it exited.
func (s *Sandbox) finishCommand(m *stage.Exited) {
	s.mu.Lock()
	p := s.procs[m.ID]
	delete(s.procs, m.ID)
	alone := len(s.procs) == 0
	s.mu.Unlock()
	if p == nil {
		return
	}
	if !alone {
		// Children of the command continue to run, but readers of the output
		// must not wait for them.
		for _, f := range []*os.File{p.stdout, p.stderr} {
			f.SetReadDeadline(time.Now().Add(grace))
		}
	}
	e := sandbox.Exit{Code: m.Code, CPU: time.Duration(m.CPU), MaxRSS: m.MaxRSS, Reason: sandbox.Exited}
	if m.Signal != 0 {
		e.Signal = unix.SignalName(syscall.Signal(m.Signal))
		e.Reason, e.Detail = s.endReason(m)
	} else if m.Code == 0 {
		e.Reason = sandbox.OK
	}
	s.mu.Lock()
	if p.stopped != "" && e.Reason == sandbox.Exited {
		e.Reason, e.Detail = p.stopped, p.detail
	}
	s.mu.Unlock()
	p.finish(e)
}

// endReason returns the reason why a signal killed a command, with details for
// the user.
func (s *Sandbox) endReason(m *stage.Exited) (sandbox.Reason, string) {
	l := prepare.Limits(s.spec)
	switch sig := syscall.Signal(m.Signal); {
	case m.OOM:
		return sandbox.OOM, fmt.Sprintf("memory limit exceeded (%d MiB)", l.Memory>>20)
	case m.Full:
		return sandbox.FileSize, fmt.Sprintf("too many files (limit %d)", l.Inodes)
	case m.Spent:
		return sandbox.CPU, fmt.Sprintf("CPU time limit exceeded (%v)", l.CPU)
	case sig == syscall.SIGXFSZ:
		return sandbox.FileSize, fmt.Sprintf("file size limit exceeded (%d MiB)", l.FileSize>>20)
	case sig == syscall.SIGSYS:
		return sandbox.Denied, "forbidden system call"
	case sig == syscall.SIGKILL && s.cfg.EndReason != nil:
		if why, detail := s.cfg.EndReason(); why != "" {
			return why, detail
		}
	}
	return sandbox.Exited, ""
}

// Collect implements [sandbox.Sandbox].
func (s *Sandbox) Collect(ctx context.Context, visit func(sandbox.File, io.Reader) error) error {
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	id, answered := s.addRequest()
	err = s.send(stage.KindCollect, &stage.Collect{ID: id}, w)
	w.Close()
	if err != nil {
		return errGone
	}
	stop := context.AfterFunc(ctx, func() { r.SetReadDeadline(time.Now()) })
	defer stop()
	err = readTree(bufio.NewReaderSize(r, 64<<10), visit)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err // from visit
	}
	r.Close()       // stops further writes
	a := <-answered // the response says why the list ended early
	if a.err == nil && a.collected.Error != "" {
		a.err = errors.New(a.collected.Error)
	}
	return cmp.Or(a.err, err)
}

func readTree(r *bufio.Reader, visit func(sandbox.File, io.Reader) error) error {
	for {
		line, err := r.ReadSlice('\n')
		if err != nil {
			return fmt.Errorf("read list of files: %w", err)
		}
		var e stage.Entry
		if err := json.Unmarshal(line, &e); err != nil {
			return err
		}
		if e.End {
			return nil
		}
		f := sandbox.File{Path: string(e.Path), Size: e.Size, Exec: e.Exec}
		body := io.LimitReader(r, e.Size)
		if err := visit(f, body); err != nil {
			return err
		}
		if _, err := io.Copy(io.Discard, body); err != nil {
			return err
		}
	}
}
