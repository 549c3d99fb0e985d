// Package console provides the terminal output and prompts of a command that
// prints and exits: standard streams, colors, tables, JSON and progress.
//
// It makes no decisions and reads no files. Package terminal implements the
// full screen of a chat. Start reading at [Console].
package console

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"

	"github.com/loadout-dev/loadout/internal/plainjson"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Console prints to the standard streams of a command. Copies share the
// streams. Its methods other than Note are not safe for concurrent use.
type Console struct {
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	JSON           bool // print results as JSON
	Quiet          bool // omit notes about minor problems

	answers *bufio.Reader // buffered standard input; nil before the first prompt
}

// Note prints a problem that does not stop the command. It prints nothing if
// Quiet is set.
func (c *Console) Note(format string, args ...any) {
	if !c.Quiet {
		fmt.Fprintln(c.Stderr, "loadout: "+untrusted.Sprintf(format, args...).ForModel())
	}
}

// PrintJSON prints v as indented JSON to standard output.
func (c *Console) PrintJSON(v any) error {
	b, err := EncodeJSON(v)
	if err != nil {
		return err
	}
	_, _ = c.Stdout.Write(b) // StdoutWriter records the error
	return nil
}

// PrintJSONLine prints v as one line of JSON to standard output.
func (c *Console) PrintJSONLine(v any) {
	if line, err := plainjson.Line(v); err == nil {
		_, _ = io.WriteString(c.Stdout, untrusted.EscapeJSON(string(line))+"\n") // a closed output is reported elsewhere
	}
}

// EncodeJSON encodes v as indented JSON. It also escapes hidden characters and
// terminal control characters that JSON permits.
func EncodeJSON(v any) ([]byte, error) {
	text, err := plainjson.Indented(v)
	if err != nil {
		return nil, err
	}
	return []byte(untrusted.EscapeJSON(string(text))), nil
}

// JSONList is a list-valued member of a JSON object.
type JSONList struct {
	Name  string
	Items iter.Seq[any]
}

// JSONItems yields the items of a slice.
func JSONItems[T any](items []T) iter.Seq[any] {
	return func(yield func(any) bool) {
		for i := range items {
			if !yield(&items[i]) {
				return
			}
		}
	}
}

// PrintJSONLists prints an object of lists as [Console.PrintJSON] does, but
// encodes one item at a time, so that long lists need little memory.
func (c *Console) PrintJSONLists(lists ...JSONList) error {
	w := bufio.NewWriterSize(c.Stdout, 64<<10) // StdoutWriter records errors
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("    ", "  ")
	separator := "{\n"
	for _, l := range lists {
		fmt.Fprintf(w, "%s  %q: [", separator, l.Name)
		before, after := "\n    ", "]"
		for item := range l.Items {
			b.Reset()
			if err := enc.Encode(item); err != nil {
				return err
			}
			_, _ = w.WriteString(before)
			_, _ = w.WriteString(untrusted.EscapeJSON(strings.TrimSuffix(b.String(), "\n")))
			before, after = ",\n    ", "\n  ]"
		}
		_, _ = w.WriteString(after)
		separator = ",\n"
	}
	_, _ = w.WriteString("\n}\n")
	_ = w.Flush()
	return nil
}

// Colorize applies the SGR code to s if w is a terminal.
func (c *Console) Colorize(w io.Writer, code, s string) string {
	if s == "" || !IsTerminal(w) || c.Getenv("NO_COLOR") != "" || c.Getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

// Bold returns s in bold if standard output is a terminal.
func (c *Console) Bold(s string) string { return c.Colorize(c.Stdout, "1", s) }

// Faint returns s in a faint color if standard output is a terminal.
func (c *Console) Faint(s string) string { return c.Colorize(c.Stdout, "2", s) }

// Red returns s in red if standard output is a terminal.
func (c *Console) Red(s string) string { return c.Colorize(c.Stdout, "31", s) }

// Green returns s in green if standard output is a terminal.
func (c *Console) Green(s string) string { return c.Colorize(c.Stdout, "32", s) }

// TerminalWidth returns the width of standard output in columns, at least 40.
// For a file or pipe it returns 0, which means that lines are not truncated or
// wrapped.
func (c *Console) TerminalWidth() int {
	if f, ok := AsFile(c.Stdout); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 40)
		}
	}
	return 0
}

// layout returns the layout for standard output.
func (c *Console) layout() terminal.Layout {
	if !IsTerminal(c.Stdout) { // check once instead of for each cell
		return terminal.Layout{Width: c.TerminalWidth(), Bold: NoStyle, Faint: NoStyle}
	}
	return terminal.Layout{Width: c.TerminalWidth(), Bold: c.Bold, Faint: c.Faint}
}

// WriteWrapped writes s to b in indented lines that fit the terminal.
func (c *Console) WriteWrapped(b *strings.Builder, indent, s string, style func(string) string) {
	b.WriteString(c.layout().Wrap(indent, s, style))
}

// NoStyle returns s unchanged. It is the style for plain text.
func NoStyle(s string) string { return s }

// PrintTable prints rows in aligned columns to standard output.
func (c *Console) PrintTable(indent string, rows [][]string) {
	fmt.Fprint(c.Stdout, c.layout().Table(indent, rows))
}

// NewProgress returns a progress line on standard error, or nil if standard
// error is not a terminal.
func (c *Console) NewProgress() *terminal.Progress {
	f, ok := AsFile(c.Stderr)
	if c.Quiet || !ok || !IsTerminal(f) {
		return nil
	}
	return terminal.NewProgress(f, func() int { w, _, _ := term.GetSize(int(f.Fd())); return w })
}

// ShowProgress shows that an operation is in progress, on a terminal only,
// until done is called.
func (c *Console) ShowProgress(what string) (done func()) { return c.NewProgress().Begin(what) }

// PromptLine prompts the user at the terminal for a line. Input typed ahead is
// kept for the next prompt.
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
	go func() { // ends with the process if the user does not answer
		line, err := c.answers.ReadString('\n')
		read <- answer{line, err}
	}()
	select {
	case <-ctx.Done():
		return "", context.Cause(ctx)
	case got := <-read:
		if got.err != nil {
			fmt.Fprintln(c.Stderr) // the input ended without a newline
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

// ConfirmOn asks a yes-or-no question on streams other than the standard ones.
// If in is a terminal, it discards what was typed before.
func (c *Console) ConfirmOn(ctx context.Context, in io.Reader, out io.Writer, question string) (bool, error) {
	if f, ok := in.(*os.File); ok {
		discardInput(f)
	}
	p := Console{Stdin: in, Stdout: out, Stderr: out, Getenv: c.Getenv}
	return p.Confirm(ctx, question)
}

// StdoutWriter writes to standard output and records the first error.
type StdoutWriter struct {
	io.Writer
	Err error
}

// Write writes p to the underlying writer.
func (s *StdoutWriter) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil && s.Err == nil {
		s.Err = err
	}
	return n, err
}

// FilterOutput returns a writer that passes the output of an untrusted program
// to w, and a function to call at the end of the output. If stream is a
// terminal, only text, colors and changes to the current line pass; see
// [terminal.Filter].
func FilterOutput(stream any, w io.Writer) (filtered io.Writer, end func()) {
	if !IsTerminal(stream) {
		return w, func() {}
	}
	f := terminal.NewFilter(w)
	return f, func() { _ = f.Close() } // StdoutWriter records the error
}

// IsTerminal reports whether the stream v is a terminal.
func IsTerminal(v any) bool {
	f, ok := AsFile(v)
	return ok && term.IsTerminal(int(f.Fd()))
}

// AsFile returns the stream v as a file. It returns false if v is not a file.
func AsFile(v any) (*os.File, bool) {
	if s, ok := v.(*StdoutWriter); ok {
		v = s.Writer
	}
	f, ok := v.(*os.File)
	return f, ok
}

// Pluralize returns n followed by noun, in the plural unless n is 1.
func Pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// FormatSize formats a size in bytes with a unit.
func FormatSize(n int64) string {
	switch {
	case n < 10_000:
		return Pluralize(int(n), "byte")
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// ShellQuote quotes s for a POSIX shell if necessary.
func ShellQuote(s string) string {
	if s != "" && !strings.ContainsFunc(s, NeedsQuoting) {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// NeedsQuoting reports whether r may have a special meaning in a shell.
func NeedsQuoting(r rune) bool {
	return !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("@%+=:,./_-~", r)
}
