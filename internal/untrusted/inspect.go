package untrusted

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Report describes the disallowed characters of a text.
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

// kindOf names what a disallowed character does.
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
