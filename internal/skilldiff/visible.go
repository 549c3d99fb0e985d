package skilldiff

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// escapeText returns s on one line. If s has more than limit bytes, the rest is
// replaced with the number of missing bytes. Control characters, invisible
// characters and characters that change the text direction are escaped as
// \u{…}, and invalid bytes as \x….
func escapeText(s string, limit int) string {
	if len(s) <= limit {
		return escapeUnsafe(s, "")
	}
	head := s[:characterStart(s, limit)]
	return escapeUnsafe(head, "") + missingNote(len(s)-len(head))
}

// cutLine truncates escaped text to limit bytes.
func cutLine(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	head := s[:characterStart(s, limit)]
	return head + missingNote(len(s)-len(head))
}

func missingNote(n int) string { return fmt.Sprintf("… (%d bytes more)", n) }

// characterStart returns the start of the character at index at.
func characterStart(s string, at int) int {
	for end := at; end > max(0, at-utf8.UTFMax); end-- {
		if utf8.RuneStart(s[end]) {
			return end
		}
	}
	return at
}

// escapeUnsafe escapes the unsafe characters in s, except those in allowed.
func escapeUnsafe(s, allowed string) string {
	out := make([]byte, 0, len(s))
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			const digits = "0123456789abcdef"
			out = append(out, '\\', 'x', digits[s[i]>>4], digits[s[i]&15])
		case isVisible(r) || strings.ContainsRune(allowed, r):
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

// isVisible reports whether a character has a visible glyph.
func isVisible(r rune) bool {
	return r >= ' ' && r <= '~' ||
		unicode.IsPrint(r) && !untrusted.Disallowed(r)
}
