package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
)

// promptLine asks the user at the terminal for a line. It keeps typed-ahead
// input for the next prompt.
func (a *app) promptLine(ctx context.Context, question string) (string, error) {
	fmt.Fprint(a.stderr, question)
	if a.stdinReader == nil {
		a.stdinReader = bufio.NewReader(a.stdin)
	}
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() { // ends with the program if the user does not answer
		line, err := a.stdinReader.ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-read:
		if got.err != nil {
			fmt.Fprintln(a.stderr) // end of input, without a line
		}
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return "", fmt.Errorf("read answer: %w", got.err)
		}
		return got.line, nil
	}
}
