package main

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"time"
)

// maxPrompt bounds what is said at once, in bytes.
const maxPrompt = 1 << 20

// readPrompt takes what is said from standard input, or adds that to the prompt where
// it comes from a file or another program. With --approve ask it has the answers.
func (a *app) readPrompt(ctx context.Context, o *chatFlags) error {
	if o.prompt == "" || o.approve != "ask" && isPiped(a.stdin) {
		text, err := a.readAll(ctx, o.prompt == "")
		if err != nil {
			return err
		}
		if len(text)+len(o.prompt) > maxPrompt {
			return fail(exitUsage, "put it into a file, and name that", "what is said has more than %d bytes", maxPrompt)
		}
		o.prompt = strings.TrimSpace(o.prompt)
		switch text = strings.TrimSpace(text); {
		case o.prompt == "":
			o.prompt = text
		case text != "":
			o.prompt += "\n\n" + fenced(text)
		}
	}
	if strings.TrimSpace(o.prompt) == "" {
		return fail(exitUsage, "as: loadout chat -p \"what is in sales.csv?\"", "nothing is said")
	}
	return nil
}

// isPiped says whether an input is a file or comes from another program: not a
// terminal, and not nothing.
func isPiped(from io.Reader) bool {
	f, ok := from.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// readAll reads standard input to its end, or until there is more than may be said at
// once. Where nothing comes for a while it says what it waits for, or goes on without
// where something else is said: who starts it may hold an input open that is for others.
func (a *app) readAll(ctx context.Context, needed bool) (string, error) {
	type input struct {
		text []byte
		err  error
	}
	began, read := make(chan struct{}), make(chan input, 1)
	go func() { // ends with the input, or with the program
		from := bufio.NewReader(io.LimitReader(a.stdin, maxPrompt+1))
		if _, err := from.Peek(1); err == nil {
			close(began)
		}
		text, err := io.ReadAll(from)
		read <- input{text, err}
	}()
	slow := time.NewTimer(2 * time.Second)
	defer slow.Stop()
	for {
		select {
		case in := <-read:
			return string(in.text), in.err
		case <-began:
			began, needed = nil, true
		case <-slow.C:
			if !needed {
				a.note("nothing came on standard input, which is left alone")
				return "", nil
			}
			a.note("reading standard input; where there is nothing to read, run it with </dev/null")
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
