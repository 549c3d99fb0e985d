package store

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// setUserTimeout limits how long data sent on a TCP socket may remain
// unacknowledged. Without the limit, a connection over a failed network can hang
// for 15 minutes. For other sockets, it does nothing.
func setUserTimeout(fd uintptr, d time.Duration) error {
	err := unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(d.Milliseconds()))
	if errors.Is(err, unix.EOPNOTSUPP) || errors.Is(err, unix.ENOPROTOOPT) {
		return nil // a Unix socket
	}
	return err
}
