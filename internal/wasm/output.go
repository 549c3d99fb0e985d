package wasm

import (
	"io"
	"sync"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
)

// limitedWriter is an output stream of the guest. If the guest writes more than
// the limit, the writer calls exceeded, because a guest may ignore write errors
// until the deadline. It is safe for concurrent use.
type limitedWriter struct {
	exceeded func() // may be called more than once

	mu        sync.Mutex // held while writing, to keep the order of writes; guards the fields below
	w         io.Writer
	remaining int64 // negative means unlimited
}

func (l *limitedWriter) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.remaining < 0 {
		return l.w.Write(b)
	}
	over := int64(len(b)) > l.remaining
	if over {
		b = b[:l.remaining]
	}
	n, err := l.w.Write(b)
	l.remaining -= int64(n)
	if over && err == nil {
		l.exceeded()
		err = experimentalsys.EIO
	}
	return n, err
}
