package spawn

import (
	"io"
	"sync"
)

const ringSize = 64 << 10

// ring holds the last ringSize bytes of a stream.
type ring struct {
	mu   sync.Mutex
	data []byte // the last bytes; at most twice ringSize
}

func (r *ring) readFrom(from io.Reader) {
	buf := make([]byte, 8<<10)
	for {
		n, err := from.Read(buf)
		r.add(buf[:n])
		if err != nil {
			return
		}
	}
}

func (r *ring) add(b []byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.data = append(r.data, b...)
	if len(r.data) > 2*ringSize {
		n := copy(r.data, r.data[len(r.data)-ringSize:])
		r.data = r.data[:n]
	}
}

func (r *ring) String() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return string(r.data[max(0, len(r.data)-ringSize):])
}
