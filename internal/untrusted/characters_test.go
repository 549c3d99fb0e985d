package untrusted_test

import (
	"testing"
	"unicode"

	"golang.org/x/text/unicode/norm"

	"github.com/loadout-dev/loadout/internal/untrusted"
)

// The table holds what the tables of the standard library say, so that a new
// version of Unicode is noticed.
func TestDisallowedAgreesWithUnicode(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		want := unicode.In(r, unicode.Cf, unicode.Zl, unicode.Zp, unicode.Cs, unicode.Variation_Selector, unicode.Other_Default_Ignorable_Code_Point, unicode.Noncharacter_Code_Point) &&
			!unicode.Is(unicode.Prepended_Concatenation_Mark, r) ||
			unicode.IsControl(r) && r != '\t' && r != '\n' && r != '\r' && r != '\f' || r >= 0xe0000 && r <= 0xe0fff || r >= 0xf0000
		if got := untrusted.Disallowed(r); got != want {
			t.Errorf("U+%04X: %v, want %v", r, got, want)
		}
	}
}

// A joiner between letters that do not join, or join anyway, is allowed after a
// virama only.
func TestJoinerAfterVirama(t *testing.T) {
	for r := rune(0); r <= unicode.MaxRune; r++ {
		virama := norm.NFC.PropertiesString(string(r)).CCC() == 9
		if got := untrusted.Inspect(string(r) + "\u200d\u0628").Clean(); got != virama {
			t.Errorf("U+%04X: allowed %v, want %v", r, got, virama)
		}
	}
}
