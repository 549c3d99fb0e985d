package editdistance_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/editdistance"
)

func TestDistance(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want int
	}{
		{"pdf", "pdf", 0}, {"PDF-tools", "pdf_tools", 0}, {"pdf", "pfd", 2}, {"pdf", "pdfs", 1}, {"", "ab", 2}, {"é-1", "É1", 0},
		{"pdf", "mermaid", 3}, // more than was asked for
	} {
		a, b := editdistance.Normalize(tt.a), editdistance.Normalize(tt.b)
		if got := editdistance.Distance(a, b, 2); got != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.a, tt.b, got, tt.want)
		}
		if got := editdistance.Distance(b, a, 2); got != tt.want {
			t.Errorf("%q and %q: %d, want %d", tt.b, tt.a, got, tt.want)
		}
	}
}

func TestLongNamesAreNotCompared(t *testing.T) {
	name := func(n int) []rune { return []rune(strings.Repeat("a", n)) }
	for _, tt := range []struct{ a, b, want int }{{64, 64, 0}, {64, 63, 1}, {65, 64, 3}, {64, 65, 3}, {65, 65, 3}, {3, 5, 2}, {3, 6, 3}} {
		if got := editdistance.Distance(name(tt.a), name(tt.b), 2); got != tt.want {
			t.Errorf("%d and %d letters: %d, want %d", tt.a, tt.b, got, tt.want)
		}
	}
}
