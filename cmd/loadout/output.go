package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"

	"github.com/loadout-dev/loadout/catalog"
	"github.com/loadout-dev/loadout/skill"
)

// printJSON prints the one JSON document of a command.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.stdout)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	return enc.Encode(v)
}

func isTerminal(w any) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
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

// width is how wide a line of standard output may be.
func (a *app) width() int {
	if f, ok := a.stdout.(*os.File); ok {
		if w, _, err := term.GetSize(int(f.Fd())); err == nil && w > 20 {
			return w
		}
	}
	return 100
}

// safe takes from text what would drive a terminal, as it comes from files of
// strangers.
func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || r >= ' ' && r != 0x7f && (r < 0x80 || r > 0x9f) {
			return r
		}
		return -1
	}, s)
}

// clip cuts text to n characters.
func clip(s string, n int) string {
	s = safe(skill.OneLine(s))
	if utf8.RuneCountInString(s) <= n {
		return s
	}
	r := []rune(s)
	return strings.TrimRight(string(r[:max(n-1, 0)]), " ") + "…"
}

// table prints rows whose last column takes the rest of the line.
func (a *app) table(rows [][]string) {
	if len(rows) == 0 {
		return
	}
	widths := make([]int, len(rows[0]))
	for _, r := range rows {
		for i, c := range r[:len(r)-1] {
			widths[i] = min(max(widths[i], utf8.RuneCountInString(c)), 40)
		}
	}
	for _, r := range rows {
		var b strings.Builder
		used := 0
		for i, c := range r {
			if i == len(r)-1 {
				b.WriteString(clip(c, max(a.width()-used, 20)))
				break
			}
			c = clip(c, widths[i])
			pad := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(c)+2)
			used += widths[i] + 2
			if i == 0 {
				c = a.bold(c)
			} else {
				c = a.faint(c)
			}
			b.WriteString(c + pad)
		}
		fmt.Fprintln(a.stdout, strings.TrimRight(b.String(), " "))
	}
}

// problems prints findings to standard error, errors always in full.
func (a *app) problems(ps []catalog.Problem) {
	if a.quiet {
		return
	}
	const most = 10
	shown, rest := 0, 0
	for _, p := range ps {
		if p.Severity != skill.Error || shown >= most {
			rest++
			continue
		}
		fmt.Fprintln(a.stderr, safe(p.String()))
		shown++
	}
	if rest > 0 {
		fmt.Fprintf(a.stderr, "%d findings%s about skills: loadout doctor shows them\n", rest, map[bool]string{true: " more", false: ""}[shown > 0])
	}
}
