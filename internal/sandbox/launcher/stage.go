//go:build linux

package launcher

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"syscall"

	"github.com/loadout-dev/loadout/sandbox"
)

// Stage is a running stage. It isolates nothing and runs nothing until a
// [Sandbox] configures it.
type Stage struct {
	command  *exec.Cmd
	conn     *net.UnixConn
	stderr   *headBuffer
	attached bool          // whether the stage is in its control group
	ended    chan struct{} // closed when the stage has exited
}

// Launch starts a stage, in its control group, for a later sandbox. It uses
// only Backend, Command, Bound, Attach and CloneInto. The caller must either
// close the stage or pass it to [Start].
func Launch(cfg *Config) (*Stage, error) {
	p, err := launch(cfg)
	if err != nil {
		return nil, err
	}
	if err := p.attach(cfg); err != nil {
		p.Close()
		return nil, err
	}
	return p, nil
}

// Ended returns a channel that is closed when the first process of the sandbox
// has exited.
func (p *Stage) Ended() <-chan struct{} { return p.ended }

// PID returns the process ID of the stage or its guard.
func (p *Stage) PID() int { return p.command.Process.Pid }

// Close stops a stage that no sandbox has used.
func (p *Stage) Close() {
	p.conn.Close()
	p.command.Process.Kill()
	<-p.ended
}

// attach adds the stage to its control group, if it has one and is not in it
// yet.
func (p *Stage) attach(cfg *Config) error {
	if p.attached || cfg.Attach == nil {
		return nil
	}
	err := cfg.Attach(p.PID())
	p.attached = err == nil
	return err
}

func launch(cfg *Config) (*Stage, error) {
	fds, err := syscall.Socketpair(syscall.AF_UNIX, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "stage"), os.NewFile(uintptr(fds[1]), "stage")
	defer ours.Close()
	p := &Stage{command: cfg.Command, stderr: &headBuffer{}, ended: make(chan struct{})}
	cmd := p.command
	cmd.ExtraFiles = append([]*os.File{theirs}, cmd.ExtraFiles...)
	cmd.Stderr = p.stderr
	cmd.WaitDelay = grace
	defer func() {
		for _, f := range cmd.ExtraFiles {
			f.Close()
		}
	}()
	conn, err := net.FileConn(ours)
	if err != nil {
		return nil, fmt.Errorf("start sandbox: %w", err)
	}
	p.conn = conn.(*net.UnixConn)
	if err := p.start(cfg); err != nil {
		p.conn.Close()
		return nil, &sandbox.UnavailableError{Backend: cfg.Backend, Missing: "cannot start the first process", Err: err}
	}
	go func() {
		p.command.Wait()
		close(p.ended)
	}()
	return p, nil
}

// start starts the command of the stage, in its control group if possible.
func (p *Stage) start(cfg *Config) error {
	start := func(c *exec.Cmd) error {
		if cfg.Bound {
			return onPermanentThread(c.Start)
		}
		return c.Start()
	}
	if cfg.CloneInto != nil {
		if dir, err := cfg.CloneInto(); err == nil {
			defer dir.Close()
			cmd := copyCommand(p.command)
			cmd.SysProcAttr.UseCgroupFD, cmd.SysProcAttr.CgroupFD = true, int(dir.Fd())
			if err = start(cmd); err == nil {
				p.command, p.attached = cmd, true
				return nil
			}
			if !isGroupError(err) {
				return err
			}
		}
	}
	return start(p.command) // the stage is attached later
}

// isGroupError reports whether err, from starting a process, may be due to its
// control group: the kernel lacks clone3, a filter denies it, or the group cannot
// have processes.
func isGroupError(err error) bool {
	return slices.ContainsFunc([]syscall.Errno{
		syscall.ENOSYS, syscall.EPERM, syscall.EBADF, syscall.E2BIG, syscall.EINVAL, syscall.EBUSY, syscall.EACCES, syscall.EOPNOTSUPP, syscall.ENODEV,
	}, func(e syscall.Errno) bool { return errors.Is(err, e) })
}

// copyCommand returns a copy of a command that has not been started. The command
// must not have a context.
func copyCommand(c *exec.Cmd) *exec.Cmd {
	attr := syscall.SysProcAttr{}
	if c.SysProcAttr != nil {
		attr = *c.SysProcAttr
	}
	return &exec.Cmd{Path: c.Path, Args: c.Args, Env: c.Env, Dir: c.Dir, Stdin: c.Stdin, Stdout: c.Stdout, Stderr: c.Stderr, ExtraFiles: c.ExtraFiles,
		WaitDelay: c.WaitDelay, SysProcAttr: &attr, Err: c.Err}
}
