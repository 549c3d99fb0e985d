//go:build linux

package sandboxtest

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/loadout-dev/loadout/internal/sandbox/mountpoint"
	"github.com/loadout-dev/loadout/internal/sandbox/prepare"
	"github.com/loadout-dev/loadout/sandbox"
)

// plain is what most programs do: os/exec with a process group and a timeout.
// It shows that the suites can fail.
type plain struct{}

func (plain) Name() string       { return "plain" }
func (plain) Tier() sandbox.Tier { return sandbox.None }

func (plain) Probe(context.Context) (*sandbox.Report, error) {
	return &sandbox.Report{Backend: "plain"}, nil
}

func (plain) Start(_ context.Context, spec *sandbox.Spec) (sandbox.Sandbox, error) {
	dir, err := os.MkdirTemp("", "plain-")
	if err != nil {
		return nil, err
	}
	b := &plainBox{dir: dir, spec: spec}
	for _, d := range []string{mountpoint.In, mountpoint.Out, mountpoint.Tmp} {
		if err := os.MkdirAll(b.at(d), 0o755); err != nil {
			return nil, err
		}
	}
	for _, t := range spec.Trees {
		if err := b.copy(t); err != nil {
			return nil, err
		}
	}
	return b, nil
}

type plainBox struct {
	dir  string
	spec *sandbox.Spec

	mu      sync.Mutex
	running []*plainProcess // guarded by mu
}

func (b *plainBox) at(p string) string { return b.dir + p }

func (b *plainBox) copy(t sandbox.Tree) error {
	for _, f := range t.Files {
		data, err := fs.ReadFile(t.FS, f.Path)
		if err != nil {
			return err
		}
		to := filepath.Join(b.at(t.Path), f.Path)
		os.MkdirAll(filepath.Dir(to), 0o755)
		mode := os.FileMode(0o644)
		if f.Exec {
			mode = 0o755
		}
		if err := os.WriteFile(to, data, mode); err != nil {
			return err
		}
	}
	return nil
}

func (b *plainBox) Exec(_ context.Context, cmd *sandbox.Cmd) (sandbox.Process, error) {
	args := prepare.Arguments(cmd, b.at)
	p := &plainProcess{cmd: exec.Command(args[0], args[1:]...), done: make(chan struct{})}
	p.cmd.Env = append(os.Environ(), prepare.Environment(b.spec, cmd, b.at)...)
	p.cmd.Dir = b.at(mountpoint.Work)
	if cmd.Dir != "" {
		p.cmd.Dir = b.at(cmd.Dir)
	}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	p.cmd.WaitDelay = 300 * time.Millisecond
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	var w, we *io.PipeWriter
	p.out, w = io.Pipe()
	p.err, we = io.Pipe()
	p.cmd.Stdout, p.cmd.Stderr = w, we
	if err := p.cmd.Start(); err != nil {
		return nil, &sandbox.StartError{Program: args[0], Err: err}
	}
	go func() {
		defer close(p.done)
		p.cmd.Wait()
		w.Close()
		we.Close()
	}()
	b.mu.Lock()
	defer b.mu.Unlock()
	b.running = append(b.running, p)
	return p, nil
}

// Collect follows links and opens whatever is there.
func (b *plainBox) Collect(_ context.Context, visit func(sandbox.File, io.Reader) error) error {
	root := b.at(mountpoint.Work)
	var walk func(rel string) error
	walk = func(rel string) error {
		all, err := os.ReadDir(filepath.Join(root, rel))
		if err != nil {
			return nil
		}
		for _, e := range all {
			p := filepath.Join(rel, e.Name())
			fi, err := os.Stat(filepath.Join(root, p))
			switch {
			case err != nil || p == "in" || strings.Count(p, "/") > 50:
			case fi.IsDir():
				err = walk(p)
			default:
				var f *os.File
				if f, err = os.Open(filepath.Join(root, p)); err == nil {
					err = visit(sandbox.File{Path: p, Size: fi.Size()}, f)
					f.Close()
				}
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	return walk("")
}

func (b *plainBox) State() sandbox.State { return sandbox.State{Enforced: map[string]string{}} }

func (b *plainBox) Close() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, p := range b.running {
		select {
		case <-p.done:
		default:
			p.Kill()
			<-p.done
		}
	}
	filepath.WalkDir(b.at(mountpoint.Work), func(p string, d fs.DirEntry, err error) error {
		if err == nil && d.Type() == fs.ModeNamedPipe { // release waiting processes
			if fd, err := unix.Open(p, unix.O_RDWR|unix.O_NONBLOCK, 0); err == nil {
				unix.Close(fd)
			}
		}
		return nil
	})
	return os.RemoveAll(b.dir)
}

type plainProcess struct {
	cmd      *exec.Cmd
	in       io.WriteCloser
	out, err *io.PipeReader
	done     chan struct{}
}

func (p *plainProcess) Stdin() io.WriteCloser { return p.in }
func (p *plainProcess) Stdout() io.Reader     { return p.out }
func (p *plainProcess) Stderr() io.Reader     { return p.err }

func (p *plainProcess) Wait() sandbox.Exit {
	<-p.done
	ws := p.cmd.ProcessState.Sys().(syscall.WaitStatus)
	if ws.Signaled() {
		return sandbox.Exit{Code: 128 + int(ws.Signal()), Signal: unix.SignalName(ws.Signal()), Reason: sandbox.Exited}
	}
	if ws.ExitStatus() != 0 {
		return sandbox.Exit{Code: ws.ExitStatus(), Reason: sandbox.Exited}
	}
	return sandbox.Exit{Reason: sandbox.OK}
}

func (p *plainProcess) Kill() {
	select {
	case <-p.done:
	default:
		if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) {
			p.cmd.Process.Kill()
		}
	}
}
