package spawn

import (
	"errors"
	"os/exec"
	"syscall"

	"golang.org/x/sys/unix"
)

// dieWithParent has the kernel kill the process when the thread that starts it
// ends; the keeper sees to it that this thread lives.
func dieWithParent(a *syscall.SysProcAttr) { a.Pdeathsig = syscall.SIGKILL }

// await waits for the end of the process and leaves it unreaped, so that its
// number, and that of its group, is nobody else's yet.
func (group) await(cmd *exec.Cmd) (reaped bool, _ error) {
	for {
		err := unix.Waitid(unix.P_PID, cmd.Process.Pid, nil, unix.WEXITED|unix.WNOWAIT, nil)
		if !errors.Is(err, unix.EINTR) {
			return false, nil
		}
	}
}
