package terminal

import (
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// No line is wider than it may be, nothing is lost but blanks, and no control character
// gets through, whatever the text.
func TestWrapKeepsTheText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringOf(rapid.SampledFrom([]rune("ab c dé文字\n\t\x1b\u202e-"))).Draw(t, "text")
		width := rapid.IntRange(10, 40).Draw(t, "width")
		var got strings.Builder
		for _, l := range styledText(text, bold).wrap(width, line{{"  ", normal}}) {
			if l.width() > width {
				t.Fatalf("%q has %d columns, more than %d", l.plainText(), l.width(), width)
			}
			got.WriteString(l.plainText())
		}
		bare := func(s string) string { return strings.NewReplacer(" ", "", "\n", "").Replace(expandTabs(Safe(s))) }
		if bare(got.String()) != bare(text) {
			t.Fatalf("of %q there is %q", text, got.String())
		}
		if strings.ContainsFunc(got.String(), IsControl) {
			t.Fatalf("%q could drive a terminal", got.String())
		}
	})
}

// A line is cut at a column, also in the middle of a style.
func TestClip(t *testing.T) {
	l := line{{"abc", bold}, {"def", faint}}
	for n, want := range map[int]string{10: "abcdef", 6: "abcdef", 5: "abcd…", 3: "ab…", 1: "…"} {
		if got := l.clip(n).plainText(); got != want {
			t.Errorf("at %d it is %q, want %q", n, got, want)
		}
	}
}

// Without colours nothing but the text is sent.
func TestPlainPalette(t *testing.T) {
	l := line{{"a", bold}, {"b", normal}}
	if got := (palette{none: true}).paint(l); got != "ab" {
		t.Errorf("plain: %q", got)
	}
	if got := (palette{}).paint(l); got != "\x1b[1ma\x1b[0mb" {
		t.Errorf("in colour: %q", got)
	}
}
