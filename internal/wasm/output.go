package wasm

import (
	"io"
	"sync"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
)

// limitedWriter is an output stream of the guest. After left bytes, it calls
// exceeded, because a guest may ignore write errors until the deadline. It is
// safe for concurrent use.
type limitedWriter struct {
	exceeded func() // may be called more than once

	mu   sync.Mutex // held while writing, so that writes keep their order and left is correct
	w    io.Writer
	left int64 // negative means unlimited
}

func (l *limitedWriter) Write(b []byte) (int, error) {
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
