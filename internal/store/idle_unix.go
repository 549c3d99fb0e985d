//go:build unix

package store

import (
	"errors"
	"syscall"
)

// hasNoInput reports whether a socket is open and has no data to read, without
// blocking.
func hasNoInput(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if !errors.Is(err, syscall.EINTR) {
			return errors.Is(err, syscall.EAGAIN)
		}
	}
}
