package main

import (
	"bufio"
	"context"
	"io"
	"strings"
	"sync"
)

// typed is what a person types, line by line, for whoever waits for the next one. One
// goroutine reads it, from the first wait until the input ends or close is called.
type typed struct {
	from  io.Reader
	lines chan string
	over  chan struct{}
	once  sync.Once
}

func newTyped(from io.Reader) *typed {
	return &typed{from: from, lines: make(chan string), over: make(chan struct{})}
}

// next waits for a line, without its end. It is [io.EOF] where there is none.
func (t *typed) next(ctx context.Context) (string, error) {
	t.once.Do(func() { go t.read() })
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

func (t *typed) read() {
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

// close ends the reading, once the input gives what is waited for.
func (t *typed) close() { close(t.over) }
