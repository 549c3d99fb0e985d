package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
)

// lineReader reads lines from the user for one waiting caller at a time. A
// goroutine reads the input, from the first call of readLine until the input
// ends or close is called.
type lineReader struct {
	from  io.Reader
	lines chan string
	over  chan struct{}
	once  sync.Once
}

func newLineReader(from io.Reader) *lineReader {
	return &lineReader{from: from, lines: make(chan string), over: make(chan struct{})}
}

// readLine waits for a line and returns it without its line end. It returns
// [io.EOF] at the end of the input.
func (t *lineReader) readLine(ctx context.Context) (string, error) {
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

func (t *lineReader) readLines() {
	defer close(t.lines)
	r := bufio.NewReader(io.LimitReader(t.from, 64*maxPrompt))
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

// close stops reading after the pending read of the input returns.
func (t *lineReader) close() { close(t.over) }
