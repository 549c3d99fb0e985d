package printable_test

import (
	"testing"

	"github.com/loadout-dev/loadout/internal/printable"
)

func TestText(t *testing.T) {
	for _, tt := range []struct {
		in   string
		most int
		want string
	}{
		{"", 0, ""},
		{"plain ~text", 100, "plain ~text"},
		{"five!", 5, "five!"}, // exactly as long as permitted
		{"sixsix", 5, "sixsi… (1 bytes more)"},
		{"aéz", 4, "aéz"},
		{"aéz", 2, "a… (3 bytes more)"}, // never half a character
		{"a😀z", 4, "a… (5 bytes more)"},
		{"a😀z", 5, "a😀… (1 bytes more)"},
		{"\x80\x80\x80\x80\x80\x80", 5, `\x80… (5 bytes more)`}, // no start of a character to cut at
		{"a\nb\tc", 100, `a\nb\tc`},
		{"\x1b[2J\x7f\x00", 100, `\x1b[2J\x7f\x00`},
		{"a\xffb", 100, `a\xffb`},
		{"a\ufffdb", 100, "a\ufffdb"}, // the character itself, not a broken one
		{"\u009b", 100, `\x9b`},
		{"\u00ff\u00ad\u0600", 100, "ÿ\\xad\\u0600"},
		{"\u0100 \u202e \u200b", 100, `Ā \u202e \u200b`},
		{"\U000e0041", 100, `\U000e0041`},
		{"\uffff\U00010000", 100, `\uffff𐀀`},
		{"\U000f0000", 100, `\U000f0000`},
	} {
		if got := printable.Text(tt.in, tt.most); got != tt.want {
			t.Errorf("Text(%q, %d) = %q, want %q", tt.in, tt.most, got, tt.want)
		}
	}
}
