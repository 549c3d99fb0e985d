package skill

import (
	"testing"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/cases"
	"golang.org/x/text/unicode/norm"
)

// foldPath equates the same characters as Unicode's full case folding.
func TestFoldPath(t *testing.T) {
	full := cases.Fold()
	reference := func(s string) string { return norm.NFD.String(full.String(norm.NFD.String(s))) }
	ours, theirs := map[string]string{}, map[string]string{}
	check := func(s string) {
		f, want := foldPath(s), reference(s)
		if other, ok := ours[f]; ok && reference(other) != want {
			t.Errorf("%+q and %+q are folded to %+q, but they differ", s, other, f)
		}
		if other, ok := theirs[want]; ok && foldPath(other) != f {
			t.Errorf("%+q and %+q are the same, but folded to %+q and %+q", s, other, f, foldPath(other))
		}
		ours[f], theirs[want] = s, s
	}
	for r := rune(1); r <= utf8.MaxRune; r++ {
		// The package does not fold Cherokee, whose small letters are of Unicode 8.
		if utf8.ValidRune(r) && !unicode.Is(unicode.Cherokee, r) {
			check(string(r))
		}
	}
	for _, s := range []string{"SS", "ss", "FFI", "st", "I\u0307", "i\u0307", "\u02bcN", "A\u02be", "a\u02be", "\u03b1\u03b9\u0301", "\u03b1\u0301\u03b9", "\u1fb3\u0301", "Kelvin", "\u212aelvin", "STRASSE", "straße", "docs/A", "docs/a"} {
		check(s)
	}
}
