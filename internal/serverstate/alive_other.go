//go:build !(darwin || linux || windows)

package serverstate

import (
	"errors"
	"os"
	"syscall"
)

func machine() string { return "" }

// startTime returns "", because start times are not available on this system,
// and reports whether the process exists.
func startTime(pid int) (string, bool) {
	p, err := os.FindProcess(pid)
	if err != nil {
		return "", false
	}
	err = p.Signal(syscall.Signal(0))
	return "", err == nil || errors.Is(err, os.ErrPermission)
}
