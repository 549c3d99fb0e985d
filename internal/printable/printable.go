// Package printable makes untrusted text safe to print on a terminal and in a
// log. It does not escape HTML.
package printable

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// Text returns s with unprintable characters escaped. If s has more than limit
// bytes, the rest is replaced with the number of omitted bytes.
func Text(s string, limit int) string {
	cut := ""
	if len(s) > limit {
		end := limit
		for end > limit-utf8.UTFMax && !utf8.RuneStart(s[end]) {
			end--
		}
		cut = fmt.Sprintf("… (%d bytes more)", len(s)-end)
		s = s[:end]
	}
	var b strings.Builder
	for i, r := range s {
		switch {
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case unicode.IsPrint(r) && !untrusted.Disallowed(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x100:
			fmt.Fprintf(&b, `\x%02x`, r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String() + cut
}
