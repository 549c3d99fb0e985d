package spawn

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent makes the kernel kill the process when the thread that started
// it exits. starter keeps that thread alive.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// await waits until the process exits but does not reap it, so that its PID and
// group ID are not reused yet.
func (group) await(cmd *exec.Cmd) (reaped bool, _ error) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return false, nil
		}
	}
}
