//go:build unix

package container

import "syscall"

// environmentFile is the first extra file of the client.
const environmentFile = "/dev/fd/3"

// gone reports whether there is no such process any more.
func gone(pid int) bool { return syscall.Kill(pid, 0) == syscall.ESRCH }
