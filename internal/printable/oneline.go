package printable

import (
	"strings"
	"unicode"
)

// OneLine replaces each run of white space and control characters with a space,
// so that the text fits on one line.
func OneLine(s string) string {
	// Nearly all texts are already on one line. The check avoids a branch that
	// is mispredicted at every space.
	odd, space := len(s) == 0, true
	for i := 0; i < len(s); i++ {
		blank := s[i] == ' '
		odd = odd || s[i]-' ' >= 0x7f-' ' || blank && space
		space = blank
	}
	if !odd && !space {
		return s
	}
	return strings.Join(strings.FieldsFunc(s, func(r rune) bool { return unicode.IsSpace(r) || unicode.IsControl(r) }), " ")
}
