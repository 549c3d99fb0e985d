package serverstate

import (
	"fmt"

	"golang.org/x/sys/unix"
)

func machineID() string { return "" }

// startTime returns a process's start time. It returns false if the process
// does not exist.
func startTime(pid int) (string, bool) {
	k, err := unix.SysctlKinfoProc("kern.proc.pid", pid)
	if err != nil || int(k.Proc.P_pid) != pid {
		return "", false
	}
	return fmt.Sprint(k.Proc.P_starttime.Sec, ".", k.Proc.P_starttime.Usec), true
}
