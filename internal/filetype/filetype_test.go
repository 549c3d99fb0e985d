package filetype_test

import (
	"strings"
	"testing"

	"github.com/loadout-dev/loadout/internal/filetype"
)

func TestIsText(t *testing.T) {
	for text, want := range map[string]bool{
		"": true, "abc\r\n\t": true, "指南 \u2028": true, "\ufeffbom": true, "\ufffd": true,
		"\x00": false, "a\xff": false, "\xe6\x8c": false, strings.Repeat("a", 1<<20) + "\x80": false, "\xff\xfea\x00": false,
	} {
		if got := filetype.IsText([]byte(text)); got != want {
			t.Errorf("IsText(%.20q) = %t, want %t", text, got, want)
		}
	}
}
