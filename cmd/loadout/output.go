package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode"

	"golang.org/x/term"
	"golang.org/x/text/width"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/internal/terminal"
	"github.com/loadout-dev/loadout/skill"
)

// stream is standard output, which remembers the first error of writing to it.
type stream struct {
	io.Writer
	err error
}

func (s *stream) Write(p []byte) (int, error) {
	n, err := s.Writer.Write(p)
	if err != nil && s.err == nil {
		s.err = err
	}
	return n, err
}

// printJSON prints the one JSON document of a command.
func (a *app) printJSON(v any) error {
	b, err := encodeJSON(v)
	if err != nil {
		return err
	}
	_, _ = a.stdout.Write(b) // the stream remembers the error
	return nil
}

// encodeJSON also escapes what would drive a terminal and JSON lets pass.
func encodeJSON(v any) ([]byte, error) {
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	if err := enc.Encode(v); err != nil {
		return nil, err
	}
	s := b.String()
	if !strings.ContainsFunc(s, drives) {
		return []byte(s), nil
	}
	var out strings.Builder
	for _, r := range s {
		if drives(r) {
			fmt.Fprintf(&out, `\u%04x`, r)
		} else {
			out.WriteRune(r)
		}
	}
	return []byte(out.String()), nil
}

// drives reports whether a character could drive a terminal, or reorder the
// text around it.
func drives(r rune) bool { return terminal.Drives(r) }

// safe takes from text what would drive a terminal, as it comes from files of
// strangers.
func safe(s string) string { return terminal.Safe(s) }

// plain is safe text on one line.
func plain(s string) string { return terminal.Plain(s) }

func isTerminal(v any) bool {
	f, ok := file(v)
	return ok && term.IsTerminal(int(f.Fd()))
}

func file(v any) (*os.File, bool) {
	if s, ok := v.(*stream); ok {
		v = s.Writer
	}
	f, ok := v.(*os.File)
	return f, ok
}

// style marks text where it goes to a terminal.
func (a *app) style(w io.Writer, code, s string) string {
	if s == "" || !isTerminal(w) || a.getenv("NO_COLOR") != "" || a.getenv("TERM") == "dumb" {
		return s
	}
	return "\x1b[" + code + "m" + s + "\x1b[0m"
}

func (a *app) bold(s string) string  { return a.style(a.stdout, "1", s) }
func (a *app) faint(s string) string { return a.style(a.stdout, "2", s) }
func (a *app) red(s string) string   { return a.style(a.stdout, "31", s) }
func (a *app) green(s string) string { return a.style(a.stdout, "32", s) }

// width is how many columns a line of standard output may have; 0 means any
// number, as what goes to a file or a program is not cut or wrapped.
func (a *app) width() int {
	if f, ok := file(a.stdout); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 0 {
			return max(w, 40)
		}
	}
	return 0
}

// columns is how many columns of a terminal a text takes.
func columns(s string) int {
	n := 0
	for _, r := range s {
		n += columnsOf(r)
	}
	return n
}

func columnsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	}
	if k := width.LookupRune(r).Kind(); k == width.EastAsianWide || k == width.EastAsianFullwidth {
		return 2
	}
	return 1
}

// clip cuts a text to n columns, 0 meaning any number.
func clip(s string, n int) string {
	s = plain(s)
	if n <= 0 || columns(s) <= n {
		return s
	}
	used := 0
	for i, r := range s {
		if used += columnsOf(r); used > n-1 {
			return strings.TrimRight(s[:i], " ") + "…"
		}
	}
	return s
}

// wrap prints a text behind an indent, in lines that fit the terminal.
func (a *app) wrap(b *strings.Builder, indent, s string, style func(string) string) {
	limit := a.width() - len(indent)
	line, used := "", 0
	flush := func() {
		if line != "" {
			fmt.Fprintf(b, "%s%s\n", indent, style(line))
		}
		line, used = "", 0
	}
	for word := range strings.FieldsSeq(plain(s)) {
		n := columns(word)
		if used > 0 && limit > 0 && used+1+n > limit {
			flush()
		}
		if used > 0 {
			line, used = line+" ", used+1
		}
		line, used = line+word, used+n
	}
	flush()
}

// same is the style of text without one.
func same(s string) string { return s }

// table prints rows in columns. The last column takes the rest of the line;
// the others are never cut, as a person may want to copy them.
func (a *app) table(indent string, rows [][]string) {
	most := 40 // a longer cell moves its own row only
	if w := a.width(); w > 0 {
		most = max(w/3, 20)
	}
	var widths []int
	for _, r := range rows {
		for len(widths) < len(r) {
			widths = append(widths, 0)
		}
		for i, c := range r {
			if n := columns(plain(c)); n <= most {
				widths[i] = max(widths[i], n)
			}
		}
	}
	var out strings.Builder
	for _, r := range rows {
		var b strings.Builder
		used := len(indent)
		b.WriteString(indent)
		for i, c := range r {
			c = plain(c)
			if i == len(r)-1 {
				if a.width() > 0 {
					c = clip(c, max(a.width()-used, 20))
				}
				b.WriteString(c)
				break
			}
			n := columns(c)
			pad := max(widths[i]-n, 0) + 2
			used += n + pad
			if i == 0 {
				c = a.bold(c)
			} else {
				c = a.faint(c)
			}
			b.WriteString(c + strings.Repeat(" ", pad))
		}
		out.WriteString(strings.TrimRight(b.String(), " ") + "\n")
	}
	fmt.Fprint(a.stdout, out.String())
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// sized is a number of bytes for people.
func sized(n int64) string {
	switch {
	case n < 10_000:
		return counted(int(n), "byte")
	case n < 1_000_000:
		return fmt.Sprintf("%d kB", (n+500)/1000)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}

// problems prints findings to standard error: what keeps skills from being
// used, and how to see the rest.
func (a *app) problems(ps []catalog.Problem) {
	if a.quiet {
		return
	}
	if rest := len(ps) - a.errors(ps); rest > 0 {
		more := ""
		if rest < len(ps) {
			more = "more "
		}
		fmt.Fprintf(a.stderr, "%s about skills: loadout doctor%s\n", counted(rest, more+"finding"), a.flags())
	}
}

// errors prints the first problems that keep skills from being used, and says how
// many it printed.
func (a *app) errors(ps []catalog.Problem) (shown int) {
	const most = 10
	for _, p := range ps {
		if p.Severity == skill.Error && shown < most {
			fmt.Fprintf(a.stderr, "%s: %s: %s [%s]\n", where(p), p.Severity, plain(p.Message), p.Code)
			if p.Fix != "" {
				fmt.Fprintf(a.stderr, "    %s\n", plain(p.Fix))
			}
			shown++
		}
	}
	return shown
}

// where is the place of a finding as editors and terminals understand it.
func where(p catalog.Problem) string {
	if p.Line == 0 {
		return plain(p.Path)
	}
	return fmt.Sprintf("%s:%d:%d", plain(p.Path), p.Line, max(p.Column, 1))
}

// progress says on a terminal what is going on where that takes long, until
// the function it returns is called.
func (a *app) progress(what string) (done func()) {
	if a.quiet || !isTerminal(a.stderr) {
		return func() {}
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		select {
		case <-stop:
			return
		case <-time.After(400 * time.Millisecond):
		}
		start := time.Now()
		for {
			fmt.Fprintf(a.stderr, "\r%s … %ds", what, int(time.Since(start).Seconds()))
			select {
			case <-stop:
				fmt.Fprintf(a.stderr, "\r%s\r", strings.Repeat(" ", len(what)+12))
				return
			case <-time.After(time.Second):
			}
		}
	}()
	return func() { close(stop); <-stopped }
}
