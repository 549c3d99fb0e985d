package skill

import (
	"strings"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// multipleFolds replaces the characters that case folding maps to several
// characters. It omits those that canonical decomposition already splits.
var multipleFolds = strings.NewReplacer("ß", "ss", "ẞ", "ss", "ŉ", "ʼn", "ẚ", "aʾ", "և", "եւ",
	"ﬀ", "ff", "ﬁ", "fi", "ﬂ", "fl", "ﬃ", "ffi", "ﬄ", "ffl", "ﬅ", "st", "ﬆ", "st",
	"ﬓ", "մն", "ﬔ", "մե", "ﬕ", "մի", "ﬖ", "վն", "ﬗ", "մխ")

// foldPath returns the same text for paths that differ only in case or Unicode
// composition. It implements Unicode's canonical caseless matching.
func foldPath(path string) string {
	if isASCII(path) {
		return strings.ToUpper(path)
	}
	path = multipleFolds.Replace(norm.NFD.String(path))
	return norm.NFD.String(strings.Map(foldRune, path))
}

// foldRune maps characters that differ only in case to the same character, the
// one with the smallest code point. The result is never a combining mark.
func foldRune(r rune) rune {
	smallest := r
	for next := unicode.SimpleFold(r); next != r; next = unicode.SimpleFold(next) {
		if smallest == '\u0345' || next < smallest && next != '\u0345' {
			smallest = next
		}
	}
	return smallest
}
