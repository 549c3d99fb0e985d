package editdistance_test

import (
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
