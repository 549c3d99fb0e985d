//go:build unix && !linux

package spawn

import (
	"os/exec"
	"syscall"
)

// dieWithParent does nothing, because this system has no parent-death signal.
// The guard kills the process instead.
func dieWithParent(*syscall.SysProcAttr) {}

// await waits for the process and reaps it, because there is no portable way to
// wait without reaping. The group ID can be reused immediately only if the
// group is empty.
func (group) await(cmd *exec.Cmd) (reaped bool, _ error) { return true, cmd.Wait() }
