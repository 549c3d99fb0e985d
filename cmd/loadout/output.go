package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/skill"
)

// stdoutWriter is standard output. It remembers the first write error.
type stdoutWriter struct {
	io.Writer
	err error
}

func (s *stdoutWriter) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// printJSON prints v as the JSON document of a command.
func (a *app) printJSON(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	_, _ = a.stdout.Write(b) // stdoutWriter remembers the error
	return nil
}

// encodeJSON encodes v as indented JSON. It also escapes terminal control
// characters that JSON allows.
func encodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	s := b.String()
	if !strings.ContainsFunc(s, isUnsafe) {
		return []byte(s), nil
	}
	var out strings.Builder
	for _, r := range s {
		if isUnsafe(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return []byte(out.String()), nil
}

// isUnsafe reports whether a character could control a terminal or reorder the
// text around it.
func isUnsafe(r rune) bool { return terminal.IsControl(r) }

// safe removes terminal control characters from untrusted text.
func safe(s string) string { return terminal.Safe(s) }

// plain is like safe, and joins lines to one.
func plain(s string) string { return terminal.Plain(s) }

func isTerminal(v any) bool {
	f, ok := asFile(v)
	return ok && term.IsTerminal(int(f.Fd()))
}

func asFile(v any) (*os.File, bool) {
	if s, ok := v.(*stdoutWriter); ok {
		v = s.Writer
	}
	f, ok := v.(*os.File)
	return f, ok
}

// colorize adds a terminal style if w is a terminal.
func (a *app) colorize(w io.Writer, code, s string) string {
	if s == "" || !isTerminal(w) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (a *app) bold(s string) string  { return a.colorize(a.stdout, "1", s) }
func (a *app) faint(s string) string { return a.colorize(a.stdout, "2", s) }
func (a *app) red(s string) string   { return a.colorize(a.stdout, "31", s) }
func (a *app) green(s string) string { return a.colorize(a.stdout, "32", s) }

// terminalWidth returns the columns of standard output, at least 40. It returns
// 0 for a file or pipe: its lines are not truncated or wrapped.
func (a *app) terminalWidth() int {
	if f, ok := asFile(a.stdout); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 40)
		}
	}
	return 0
}

// textWidth returns the number of terminal columns of a text.
func textWidth(s string) int { return terminal.Width(s) }

// clip truncates a text to n columns; 0 means no limit.
func clip(s string, n int) string {
	if n <= 0 {
		return plain(s)
	}
	return terminal.Clip(s, n)
}

// layout returns the layout of standard output.
func (a *app) layout() terminal.Layout {
	return terminal.Layout{Width: a.terminalWidth(), Bold: a.bold, Faint: a.faint}
}

// writeWrapped writes an indented text in lines that fit the terminal.
func (a *app) writeWrapped(b *strings.Builder, indent, s string, style func(string) string) {
	b.WriteString(a.layout().Wrap(indent, s, style))
}

// noStyle is the style of plain text.
func noStyle(s string) string { return s }

// printTable prints rows in columns.
func (a *app) printTable(indent string, rows [][]string) {
	fmt.Fprint(a.stdout, a.layout().Table(indent, rows))
}

// pluralize returns a number with its noun.
func pluralize(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// formatSize returns a number of bytes for users.
func formatSize(n int64) string {
	switch {
	case n < 10_000:
		return pluralize(int(n), "byte")
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// printProblems prints errors of skills to standard error, and the number of
// other findings.
func (a *app) printProblems(ps []catalog.Problem) {
	if a.quiet {
		return
	}
	if rest := len(ps) - a.printErrors(ps); rest > 0 {
		more := ""
		if rest < len(ps) {
			more = "more "
		}
		fmt.Fprintf(a.stderr, "%s about skills: loadout doctor%s\n", pluralize(rest, more+"finding"), a.skillFlags())
	}
}

// printErrors prints the first errors of skills and returns how many it
// printed.
func (a *app) printErrors(ps []catalog.Problem) (shown int) {
	const most = 10
	for _, p := range ps {
		if p.Severity == skill.Error && shown < most {
			fmt.Fprintf(a.stderr, "%s: %s: %s [%s]\n", formatPosition(p), p.Severity, plain(p.Message), p.Code)
			if p.Fix != "" {
				fmt.Fprintf(a.stderr, "    %s\n", plain(p.Fix))
			}
			shown++
		}
	}
	return shown
}

// formatPosition returns the position of a finding in the form that editors and
// terminals understand.
func formatPosition(p catalog.Problem) string {
	if p.Line == 0 {
		return plain(p.Path)
	}
	return fmt.Sprintf("%s:%d:%d", plain(p.Path), p.Line, max(p.Column, 1))
}

// newProgress returns the progress line of the terminal, or nil if standard
// error is not one.
func (a *app) newProgress() *terminal.Progress {
	f, ok := asFile(a.stderr)
	if a.quiet || !ok || !isTerminal(f) {
		return nil
	}
	return terminal.NewProgress(f, func() int { w, _, _ := term.GetSize(int(f.Fd())); return w })
}

// showProgress shows a slow operation on the terminal until done is called.
func (a *app) showProgress(what string) (done func()) { return a.newProgress().Begin(what) }
