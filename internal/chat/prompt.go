package chat

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"time"

	"github.com/loadout-dev/loadout/internal/exit"
)

// maxPrompt is the maximum size of a user's message, in bytes.
const maxPrompt = 1 << 20

// readPrompt reads the prompt from standard input, or appends piped input to
// the prompt. With --approve ask, standard input is reserved for answers unless
// it is piped.
func (h *Host) readPrompt(ctx context.Context, o *Flags) error {
	if o.Prompt == "" || o.Approve != "ask" && isPiped(h.Stdin) {
		text, err := h.readStdin(ctx, o.Prompt == "")
		if err != nil {
			return err
		}
		if len(text)+len(o.Prompt) > maxPrompt {
			return exit.Errorf(exit.Usage, "put it into a file, and name the file", "prompt larger than %d bytes", maxPrompt)
		}
		o.Prompt = strings.TrimSpace(o.Prompt)
		switch text = strings.TrimSpace(text); {
		case o.Prompt == "":
			o.Prompt = text
		case text != "":
			o.Prompt += "\n\n" + fenced(text)
		}
	}
	if strings.TrimSpace(o.Prompt) == "" {
		return exit.Errorf(exit.Usage, "loadout chat -p \"what is in sales.csv?\"", "no prompt given")
	}
	return nil
}

// isPiped reports whether input is a file or a pipe, as opposed to a terminal
// or the null device.
func isPiped(input io.Reader) bool {
	f, ok := input.(*os.File)
	if !ok {
		return true
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice == 0
}

// readStdin reads standard input to its end, but no more than maxPrompt bytes.
// If no input arrives for a while, it prints a note if needed is set, and
// otherwise stops reading, because the input may be meant for another program.
func (h *Host) readStdin(ctx context.Context, needed bool) (string, error) {
	type input struct {
		text []byte
		err  error
	}
	began, read := make(chan struct{}), make(chan input, 1)
	go func() { // ends with the input or the process
		from := bufio.NewReader(io.LimitReader(h.Stdin, maxPrompt+1))
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
				h.Note("no input on standard input, continuing without it")
				return "", nil
			}
			h.Note("reading standard input; to continue without input use </dev/null")
		case <-ctx.Done():
			return "", context.Cause(ctx)
		}
	}
}
