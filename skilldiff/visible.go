package skilldiff

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// visible is s on one line, cut at so many bytes with a note of how many are
// missing, in which what cannot be seen, would drive a terminal or shows text in
// another order is written as \u{…}, and a byte that is no text as \x….
func visible(s string, most int) string {
	if len(s) <= most {
		return spelled(s, "")
	}
	head := s[:boundary(s, most)]
	return spelled(head, "") + missing(len(s)-len(head))
}

// cutLine cuts a text in which all is spelled already.
func cutLine(s string, most int) string {
	if len(s) <= most {
		return s
	}
	head := s[:boundary(s, most)]
	return head + missing(len(s)-len(head))
}

func missing(n int) string { return fmt.Sprintf("… (%d bytes more)", n) }

// boundary is where a character begins, at or just before an index.
func boundary(s string, at int) int {
	for end := at; end > max(0, at-utf8.UTFMax); end-- {
		if utf8.RuneStart(s[end]) {
			return end
		}
	}
	return at
}

// spelled is s with what does not show written out, but for the characters of
// keep.
func spelled(s, keep string) string {
	out := make([]byte, 0, len(s))
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			const digits = "0123456789abcdef"
			out = append(out, '\\', 'x', digits[s[i]>>4], digits[s[i]&15])
		case shows(r) || strings.ContainsRune(keep, r):
			out = utf8.AppendRune(out, r)
		case r == '\n':
			out = append(out, `\n`...)
		case r == '\r':
			out = append(out, `\r`...)
		case r == '\t':
			out = append(out, `\t`...)
		default:
			out = append(out, `\u{`...)
			out = append(strconv.AppendInt(out, int64(r), 16), '}')
		}
	}
	return string(out)
}

// shows reports whether a reader sees the character where it stands.
func shows(r rune) bool {
	return r >= ' ' && r <= '~' ||
		unicode.IsPrint(r) && !unicode.Is(unicode.Variation_Selector, r) && !unicode.Is(unicode.Other_Default_Ignorable_Code_Point, r)
}
