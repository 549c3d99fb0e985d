package printable_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/printable"
)

func TestOneLineStaysWithinItsLine(t *testing.T) {
	for in, want := range map[string]string{
		"": "", "a b": "a b", " a  b ": "a b", "a\nb\r\n\tc": "a b c", "a\u2028b\u0085c": "a b c", "é ü": "é ü",
		"a\x00b\x1b[2J": "a b [2J", "a\u009b2Jb": "a 2Jb", "a ": "a", "\u00a0": "",
	} {
		if got := printable.OneLine(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

func FuzzOneLine(f *testing.F) {
	f.Add("a\n b\x1b[2J")
	f.Fuzz(func(t *testing.T, s string) {
		if line := printable.OneLine(s); printable.OneLine(line) != line || strings.ContainsAny(line, "\n\r\x00\x1b") {
			t.Errorf("%q: line %q", s, line)
		}
	})
}

func TestIsLabel(t *testing.T) {
	for s, want := range map[string]bool{
		"a b": true, "数据": true, "": true, "a\nb": false, "a\x1b": false, "a\u202eb": false, "a\u200bb": false,
	} {
		if got := printable.IsLabel(s); got != want {
			t.Errorf("IsLabel(%q) = %t", s, got)
		}
	}
}
