package wasm

import (
	"io"
	"sync"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
)

// limited is a stream of the guest. It passes on as many bytes as are left and then calls exceeded, because a guest
// may ignore the error of a write and go on until the deadline. Safe for concurrent use.
type limited struct {
	exceeded func() // may be called more than once

	mu   sync.Mutex // held while writing, so that two writes keep their order and the count is right
	w    io.Writer
	left int64 // negative: no limit
}

func (l *limited) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.left < 0 {
		return l.w.Write(b)
	}
	over := int64(len(b)) > l.left
	if over {
		b = b[:l.left]
	}
	n, err := l.w.Write(b)
	l.left -= int64(n)
	if over && err == nil {
		l.exceeded()
		err = experimentalsys.EIO
	}
	return n, err
}
