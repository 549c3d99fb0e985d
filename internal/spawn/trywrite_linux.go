package spawn

import (
	"errors"

	"golang.org/x/sys/unix"
)

// pipeBuf is the maximum size, in bytes, of an atomic write to a pipe on Linux.
const pipeBuf = 4096

// TryWrite writes b to the standard input of the process without waiting. It
// returns false and writes nothing if b is longer than pipeBuf or the pipe is full.
func (p *process) TryWrite(b []byte) (bool, error) {
	if len(b) > pipeBuf {
		return false, nil
	}
	raw, err := p.stdin.SyscallConn()
	if err != nil {
		return false, err
	}
	if e := raw.Write(func(fd uintptr) bool {
		for {
			if _, err = unix.Write(int(fd), b); !errors.Is(err, unix.EINTR) {
				return true // do not wait
			}
		}
	}); e != nil {
		return false, e
	}
	if errors.Is(err, unix.EAGAIN) {
		return false, nil
	}
	return err == nil, err
}
