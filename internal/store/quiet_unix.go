//go:build unix

package store

import (
	"errors"
	"syscall"
)

// nothingToRead reports whether a read of a socket, which does not wait, would find
// neither bytes nor an end.
func nothingToRead(fd uintptr) bool {
	var one [1]byte
	for {
		_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK)
		if !errors.Is(err, syscall.EINTR) {
			return errors.Is(err, syscall.EAGAIN)
		}
	}
}
