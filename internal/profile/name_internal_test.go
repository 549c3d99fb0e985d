package profile

import (
	"strings"
	"testing"
)

func TestNameFault(t *testing.T) {
	for name, want := range map[string]string{
		"analyst": "", "数据分析": "", "...": "", "a.b": "", strings.Repeat("é", 128): "",
		"": "is missing", " ": "is missing", strings.Repeat("é", 129): "is longer than 128 characters", "a\u202eb": "contains an invisible character",
		".": "cannot be part of a URL", "..": "cannot be part of a URL", "a/b": "cannot be part of a URL", `a\b`: "cannot be part of a URL", "a?": "cannot be part of a URL", "a#": "cannot be part of a URL", "%41": "cannot be part of a URL",
	} {
		if got := nameFault(name); got != want {
			t.Errorf("%q %s, want %q", name, got, want)
		}
	}
}

func TestQuote(t *testing.T) {
	for in, want := range map[string]string{
		"a": `"a"`, strings.Repeat("x", 80): `"` + strings.Repeat("x", 80) + `"`, strings.Repeat("x", 81): `"` + strings.Repeat("x", 80) + `…"`,
		strings.Repeat("x", 79) + "é": `"` + strings.Repeat("x", 79) + `…"`, // no part of a character
	} {
		if got := quote(in); got != want {
			t.Errorf("%q: %s, want %s", in, got, want)
		}
	}
}
