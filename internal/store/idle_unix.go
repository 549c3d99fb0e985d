//go:build unix

package store

import (
	"errors"
	"syscall"
)

// hasNoInput reports whether a non-blocking read of a socket would find neither
// bytes nor its end.
func hasNoInput(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if !errors.Is(err, syscall.EINTR) {
			return errors.Is(err, syscall.EAGAIN)
		}
	}
}
