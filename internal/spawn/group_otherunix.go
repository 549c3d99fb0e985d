//go:build unix && !linux

package spawn

import (
	"os/exec"
	"syscall"
)

// dieWithParent does nothing: there is no such signal here. The guard does it.
func dieWithParent(*syscall.SysProcAttr) {}

// await reaps the process: there is no portable way to wait without. The number of
// its group is free for a moment before the group is killed only if nobody is left
// in it.
func (group) await(cmd *exec.Cmd) (reaped bool, _ error) { return true, cmd.Wait() }
