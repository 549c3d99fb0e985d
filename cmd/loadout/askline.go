package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// askLine asks a person at the terminal for a line. What is typed ahead stays for the
// next question.
func (a *app) askLine(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.stderr, question)
	if a.typed == nil {
		a.typed = bufio.NewReader(a.stdin)
	}
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() { // ends with the program, where nobody answers
		line, err := a.typed.ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-read:
		if got.err != nil {
			fmt.Fprintln(a.stderr) // the end of input, without a line
		}
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return "", fmt.Errorf("read the answer: %w", got.err)
		}
		return got.line, nil
	}
}
