package loadout

import (
	"bufio"
	"io"
	"sync"

	"github.com/loadout-dev/loadout/sandbox"
)

// tail keeps the last of what is written to it.
type tail struct {
	most int

	mu   sync.Mutex
	kept []byte
}

// Write keeps b, and forgets what came long before.
func (t *tail) Write(b []byte) (int, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	n := len(b)
	if over := len(b) - t.most; over > 0 {
		b = b[over:]
	}
	if over := len(t.kept) + len(b) - t.most; over > 0 {
		t.kept = append(t.kept[:0], t.kept[over:]...)
	}
	t.kept = append(t.kept, b...)
	return n, nil
}

func (t *tail) bytes() []byte {
	t.mu.Lock()
	defer t.mu.Unlock()
	return append([]byte{}, t.kept...)
}

// hiding is a stream of lines in which secrets are replaced. A line is given on
// when it has come; one of more than maxLine in pieces, in which a secret may be
// cut.
type hiding struct {
	from    *bufio.Reader
	secrets []sandbox.Secret
	ready   []byte
	err     error
}

const maxLine = 1 << 20

func newHiding(r io.Reader, secrets []sandbox.Secret) io.Reader {
	return &hiding{from: bufio.NewReaderSize(r, maxLine), secrets: secrets}
}

// Read reads what is ready of a line.
func (h *hiding) Read(b []byte) (int, error) {
	for len(h.ready) == 0 {
		if h.err != nil {
			return 0, h.err
		}
		var line []byte
		line, h.err = h.from.ReadSlice('\n')
		if h.err == bufio.ErrBufferFull {
			h.err = nil
		}
		h.ready = sandbox.Redact(line, h.secrets...)
	}
	n := copy(b, h.ready)
	h.ready = h.ready[n:]
	return n, nil
}
