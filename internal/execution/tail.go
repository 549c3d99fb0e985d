package execution

import "sync"

// tailBuffer stores the last limit bytes written to it. It is safe for
// concurrent use.
type tailBuffer struct {
	limit int

	mu   sync.Mutex
	data []byte
}

// Write appends b and drops the oldest bytes that exceed the limit.
func (t *tailBuffer) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if over := len(b) - t.limit; over > 0 {
		b = b[over:]
	}
	if over := len(t.data) + len(b) - t.limit; over > 0 {
		t.data = append(t.data[:0], t.data[over:]...)
	}
	t.data = append(t.data, b...)
	return n, nil
}

func (t *tailBuffer) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte{}, t.data...)
}
