package untrusted

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Report describes the disallowed characters in text.
type Report struct {
	Count int    // number of disallowed characters; 0 if there are none
	Line  int    // line of the first, starting at 1
	First string // the first, as in U+202E, or 0xFF for an invalid byte
	kinds []string
}

// Inspect reports the disallowed characters of s. It does not look for
// delimiters.
func Inspect(s string) Report {
	var out Report
	for c := range disallowedIn(s) {
		if out.Count++; out.Count == 1 {
			out.Line = 1 + strings.Count(s[:c.at], "\n")
			out.First = fmt.Sprintf("U+%04X", c.r)
			if c.r == utf8.RuneError && c.size == 1 {
				out.First = fmt.Sprintf("0x%02X", s[c.at])
			}
		}
		if kind := kindOf(c); !slices.Contains(out.kinds, kind) {
			out.kinds = append(out.kinds, kind)
		}
	}
	slices.Sort(out.kinds)
	return out
}

// InspectFile is like [Inspect], but for a whole text file. It allows a byte
// order mark at its start, which some editors write.
func InspectFile(text string) Report { return Inspect(strings.TrimPrefix(text, "\ufeff")) }

// Line is a line of text that contains disallowed characters.
type Line struct {
	Number int    `json:"line"` // starting at 1
	Text   string `json:"text"` // text of the line as returned by [Text.Visible], shortened
}

// maxLine is the maximum number of bytes of a [Line] before and after its first
// disallowed character.
const maxLine = 120

// VisibleLines returns the lines of a text file that contain disallowed
// characters, and makes these characters visible. It returns up to limit lines,
// and the number of further such lines. A byte order mark at the start is
// allowed.
func VisibleLines(text string, limit int) (lines []Line, others int) {
	text = strings.TrimPrefix(text, "\ufeff")
	number, from := 1, 0 // of the text up to from
	end := 0             // of the last line with a disallowed character
	for c := range disallowedIn(text) {
		if c.at < end {
			continue
		}
		number, from = number+strings.Count(text[from:c.at], "\n"), c.at
		start := 1 + strings.LastIndexByte(text[:c.at], '\n')
		if end = len(text); strings.IndexByte(text[c.at:], '\n') >= 0 {
			end = c.at + strings.IndexByte(text[c.at:], '\n')
		}
		if len(lines) == limit {
			others++
			continue
		}
		lines = append(lines, Line{number, excerpt(text[start:end], c.at-start)})
	}
	return lines, others
}

// excerpt returns the part of a line around the character at an offset, with
// disallowed characters made visible.
func excerpt(line string, at int) string {
	from, to := max(0, at-maxLine), min(len(line), at+maxLine)
	for from > 0 && !utf8.RuneStart(line[from]) {
		from--
	}
	for to < len(line) && !utf8.RuneStart(line[to]) {
		to++
	}
	out := New(line[from:to]).Visible()
	if from > 0 {
		out = "…" + out
	}
	if to < len(line) {
		out += "…"
	}
	return out
}

// Clean reports whether the text has no disallowed characters.
func (r Report) Clean() bool { return r.Count == 0 }

// String describes the characters, for example "3 hidden characters (tags; the
// first is U+E0069 in line 7)". It returns "" if there are none.
func (r Report) String() string {
	switch r.Count {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 hidden character (%s: %s in line %d)", strings.Join(r.kinds, ", "), r.First, r.Line)
	}
	return fmt.Sprintf("%d hidden characters (%s; the first is %s in line %d)", r.Count, strings.Join(r.kinds, ", "), r.First, r.Line)
}

// kindOf returns a name for the effect of a disallowed character.
func kindOf(c character) string {
	switch {
	case c.r == utf8.RuneError:
		return "invalid UTF-8"
	case c.r < 0xa0:
		return "terminal control"
	case c.r >= 0xe0000 && c.r <= 0xe007f:
		return "tags"
	case c.r >= 0x202a && c.r <= 0x202e, c.r >= 0x2066 && c.r <= 0x2069, c.r == 0x200e, c.r == 0x200f, c.r == 0x61c:
		return "text direction"
	case c.r >= 0xfe00 && c.r <= 0xfe0f, c.r >= 0xe0100 && c.r <= 0xe01ef:
		return "variation selectors"
	}
	return "invisible"
}
