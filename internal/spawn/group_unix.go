//go:build unix

package spawn

import (
	"os/exec"
	"syscall"
)

// group is the process group of a command. Its ID is the PID of the command.
type group struct{}

func (group) prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	dieWithParent(cmd.SysProcAttr)
}

func (group) started(*exec.Cmd) error { return nil }

func (group) terminate(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }

func (group) kill(cmd *exec.Cmd) { syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }

func (group) close() {}
