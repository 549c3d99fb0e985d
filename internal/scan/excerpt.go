package scan

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Maximum number of characters in a finding's excerpt and path.
const (
	maxExcerpt = 160
	maxPath    = 512
)

// escapeText returns s on one line, truncated to limit characters. Control and
// invisible characters are escaped as \u{…}.
func escapeText(s string, limit int) string {
	var b strings.Builder
	n, blank := 0, true
	for i, r := range s {
		if n >= limit {
			b.WriteString("…")
			break
		}
		switch {
		case r == '\n' || r == '\r' || r == '\t' || r == ' ':
			if !blank {
				b.WriteByte(' ')
				n++
			}
			blank = true
			continue
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			fmt.Fprintf(&b, `\x%02x`, s[i])
			n += 4
		case !isVisible(r):
			fmt.Fprintf(&b, `\u{%x}`, r)
			n += 6
		default:
			b.WriteRune(r)
			n++
		}
		blank = false
	}
	return strings.TrimRight(b.String(), " ")
}

// isVisible reports whether a character has a visible glyph.
func isVisible(r rune) bool {
	return unicode.IsPrint(r) && !untrusted.Disallowed(r)
}
