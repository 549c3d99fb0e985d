// Package console is the terminal of a command that prints and exits: its
// standard streams, colors, tables, JSON, progress, and questions to the user.
//
// It decides nothing and reads no files. Package terminal is the full screen
// of a chat. Start reading at [Console].
package console

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/loadout-dev/loadout/internal/terminal"
)

// Console is the standard streams of a command and the way it prints to them.
// A copy shares the streams. Its methods are not safe for concurrent use, except
// Note.
type Console struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	JSON           bool // print results as JSON
	Quiet          bool // print no notes about minor problems

	answers *bufio.Reader // buffers standard input after the first question
}

// Note prints a problem that does not stop the command, unless --quiet is given.
func (c *Console) Note(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintln(c.Stderr, "loadout: "+terminal.Plain(fmt.Sprintf(format, args...)))
	}
}

// PrintJSON prints v as the JSON document of a command.
func (c *Console) PrintJSON(v any) error {
	b, err := EncodeJSON(v)
	if err != nil {
		return err
	}
	_, _ = c.Stdout.Write(b) // StdoutWriter remembers the error
	return nil
}

// PrintJSONLine prints v as a line of JSON.
func (c *Console) PrintJSONLine(v any) {
	enc := json.NewEncoder(c.Stdout)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // a closed output is reported elsewhere
}

// EncodeJSON encodes v as indented JSON. It also escapes terminal control
// characters that JSON allows.
func EncodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	s := b.String()
	if !strings.ContainsFunc(s, terminal.IsControl) {
		return []byte(s), nil
	}
	var out strings.Builder
	for _, r := range s {
		if terminal.IsControl(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return []byte(out.String()), nil
}

// Colorize adds a terminal style if w is a terminal.
func (c *Console) Colorize(w io.Writer, code, s string) string {
	if s == "" || !IsTerminal(w) || c.Getenv("NO_COLOR") != "" || c.Getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold returns a text in bold if standard output is a terminal.
func (c *Console) Bold(s string) string { return c.Colorize(c.Stdout, "1", s) }

// Faint returns a text in a faint color if standard output is a terminal.
func (c *Console) Faint(s string) string { return c.Colorize(c.Stdout, "2", s) }

// Red returns a text in red if standard output is a terminal.
func (c *Console) Red(s string) string { return c.Colorize(c.Stdout, "31", s) }

// Green returns a text in green if standard output is a terminal.
func (c *Console) Green(s string) string { return c.Colorize(c.Stdout, "32", s) }

// TerminalWidth returns the columns of standard output, at least 40. It returns
// 0 for a file or pipe: its lines are not truncated or wrapped.
func (c *Console) TerminalWidth() int {
	if f, ok := AsFile(c.Stdout); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 40)
		}
	}
	return 0
}

// layout returns the layout of standard output.
func (c *Console) layout() terminal.Layout {
	return terminal.Layout{Width: c.TerminalWidth(), Bold: c.Bold, Faint: c.Faint}
}

// WriteWrapped writes an indented text in lines that fit the terminal.
func (c *Console) WriteWrapped(b *strings.Builder, indent, s string, style func(string) string) {
	b.WriteString(c.layout().Wrap(indent, s, style))
}

// NoStyle is the style of plain text.
func NoStyle(s string) string { return s }

// PrintTable prints rows in columns.
func (c *Console) PrintTable(indent string, rows [][]string) {
	fmt.Fprint(c.Stdout, c.layout().Table(indent, rows))
}

// NewProgress returns the progress line of the terminal, or nil if standard
// error is not one.
func (c *Console) NewProgress() *terminal.Progress {
	f, ok := AsFile(c.Stderr)
	if c.Quiet || !ok || !IsTerminal(f) {
		return nil
	}
	return terminal.NewProgress(f, func() int { w, _, _ := term.GetSize(int(f.Fd())); return w })
}

// ShowProgress shows a slow operation on the terminal until done is called.
func (c *Console) ShowProgress(what string) (done func()) { return c.NewProgress().Begin(what) }

// PromptLine asks the user at the terminal for a line. It keeps typed-ahead
// input for the next prompt.
func (c *Console) PromptLine(ctx context.Context, question string) (string, error) {
	fmt.Fprint(c.Stderr, question)
	if c.answers == nil {
		c.answers = bufio.NewReader(c.Stdin)
	}
	type answer struct {
		line string
		err  error
	}
	read := make(chan answer, 1)
	go func() { // ends with the program if the user does not answer
		line, err := c.answers.ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-read:
		if got.err != nil {
			fmt.Fprintln(c.Stderr) // end of input, without a line
		}
		if got.err != nil && !errors.Is(got.err, io.EOF) {
			return "", fmt.Errorf("read answer: %w", got.err)
		}
		return got.line, nil
	}
}

// Confirm asks the user at the terminal a yes-or-no question.
func (c *Console) Confirm(ctx context.Context, question string) (bool, error) {
	line, err := c.PromptLine(ctx, question+" [y/N] ")
	if err != nil {
		return false, err
	}
	line = strings.ToLower(strings.TrimSpace(line))
	return line == "y" || line == "yes", nil
}

// StdoutWriter is standard output. It remembers the first write error.
type StdoutWriter struct {
	io.Writer
	Err error
}

// Write writes to standard output.
func (s *StdoutWriter) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil && s.Err == nil {
		s.Err = err
	}
	return n, err
}

// IsTerminal reports whether a stream is a terminal.
func IsTerminal(v any) bool {
	f, ok := AsFile(v)
	return ok && term.IsTerminal(int(f.Fd()))
}

// AsFile returns the file of a stream, if it is one.
func AsFile(v any) (*os.File, bool) {
	if s, ok := v.(*StdoutWriter); ok {
		v = s.Writer
	}
	f, ok := v.(*os.File)
	return f, ok
}

// Pluralize returns a number with its noun.
func Pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FormatSize returns a number of bytes for users.
func FormatSize(n int64) string {
	switch {
	case n < 10_000:
		return Pluralize(int(n), "byte")
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// ShellQuote quotes a word for a shell if necessary.
func ShellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, NeedsQuoting) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// NeedsQuoting reports whether a character could have a meaning in a shell.
func NeedsQuoting(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@%+=:,./_-~", r)
}
