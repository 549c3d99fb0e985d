package terminal

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
)

// LineReader reads lines of input for one caller at a time. The first call to
// ReadLine starts a goroutine that reads the input until it ends or Close is
// called.
type LineReader struct {
	from  io.Reader
	lines chan string
	over  chan struct{}
	once  sync.Once
}

// maxInputBytes is the maximum size of the whole input.
const maxInputBytes = 64 << 20

// NewLineReader returns a reader for the lines of r.
func NewLineReader(r io.Reader) *LineReader {
	return &LineReader{from: r, lines: make(chan string), over: make(chan struct{})}
}

// ReadLine waits for the next line and returns it without its newline. It
// returns [io.EOF] at the end of the input.
func (t *LineReader) ReadLine(ctx context.Context) (string, error) {
	t.once.Do(func() { go t.readLines() })
	select {
	case line, ok := <-t.lines:
		if !ok {
			return "", io.EOF
		}
		return line, nil
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}

func (t *LineReader) readLines() {
	defer close(t.lines)
	r := bufio.NewReader(io.LimitReader(t.from, maxInputBytes))
	for {
		line, err := r.ReadString('\n')
		if line != "" {
			select {
			case t.lines <- strings.TrimRight(line, "\r\n"):
			case <-t.over:
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// Close stops the reading goroutine after its pending read returns.
func (t *LineReader) Close() { close(t.over) }
